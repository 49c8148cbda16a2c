from page_base import campaign

from fuzzer.page.arms import arm_kinds
from fuzzer.page.campaign import read_campaign


def test_kinds_of_arms_hold_the_bandits_own_numbers(tmp_path):
    state = read_campaign(campaign(tmp_path / "camp").path).state
    kinds = {kind.name: kind for kind in arm_kinds(state)}
    engines = {arm.name: arm for arm in kinds["Engines"].arms}
    assert (
        engines["template"].mean,
        engines["template"].low,
        engines["template"].high,
    ) == state.schedule.engines.posterior("template")
    assert round(engines["template"].pulls) == 3 and engines["mutate"].pulls == 0
    for kind in kinds.values():
        means = [arm.mean for arm in kind.arms]
        assert means == sorted(means, reverse=True)
        assert all(arm.low <= arm.mean <= arm.high <= kind.scale for arm in kind.arms)
    assert len(kinds["Features"].arms) + kinds["Features"].left_out == len(state.space.features)
    assert any(name.name == "abs (pointwise_unary)" for name in kinds["Operators"].arms)
