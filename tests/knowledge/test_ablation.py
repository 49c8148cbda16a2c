"""Sources of knowledge switched off, and what a campaign learns of single patterns."""

from __future__ import annotations

import random
import time

import pytest

from fuzzer.engines.idioms import Knowledge
from fuzzer.engines.mutate import MUTATIONS, MutationContext, mutate
from fuzzer.exits import UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import default_entries
from fuzzer.llm import retrieve
from fuzzer.loop_state import LoopState
from fuzzer.policy.plan import Outcome, Plan
from fuzzer.policy.schedule import Schedule
from fuzzer.program import Program

SPACE = FeatureSpace.load()
ENTRIES = {entry.id: entry for entry in default_entries()}
WEIGHTS = {name: entry.weight for name, entry in ENTRIES.items()}
PARENT = Program.parse(
    "import torch\n\nMETA = {}\n\n\ndef build_inputs():\n    torch.manual_seed(0)\n    return torch.randn(4, 7), "
    "torch.randn(4, 7)\n\n\ndef fn(a, b):\n    c = torch.sin(a) + b\n    d = c.t().argmax()\n    return c, d\n"
)


@pytest.fixture(scope="module")
def operators() -> Operators:
    return Operators.load_extract()


def schedule(**options: object) -> Schedule:
    return Schedule(SPACE, ["scan"], {"scan": ["cumsum"]}, ["dtype"], 1, entries=WEIGHTS, **options)  # type: ignore[arg-type]


def run(reward: float, *entries: str) -> Outcome:
    return Outcome(Plan(1, "template"), "pass", reward, 1.0, entries=entries)


def test_names_of_sources() -> None:
    assert Knowledge.without(["patterns"]) == Knowledge(patterns=False)
    assert Knowledge.without(["knowledge"]) == Knowledge(False, False, False) and Knowledge.without([]) == Knowledge()
    with pytest.raises(UserError, match="patterns, subgraphs, neighbours, knowledge"):
        Knowledge.without(["pattern"])


def test_what_is_off_reaches_no_engine(operators: Operators) -> None:
    state = LoopState(operators, SPACE, 1, knowledge=Knowledge.without(["patterns"]))
    assert "apply_pattern" not in state.schedule.mutations and "insert_subgraph" in state.schedule.mutations
    assert {ENTRIES[name].kind for name in state.schedule.weights} == {"subgraph"}
    off = Knowledge.without(["knowledge"])
    for name in ("apply_pattern", "insert_subgraph"):
        assert mutate(PARENT, name, MutationContext(random.Random(1), knowledge=off)) is None and name in MUTATIONS
    features, rng = ("layout=transposed", "op_family=index_reduction"), random.Random(1)
    assert retrieve.pattern(features, ("index_reduction",), rng, off) is None
    words = [entry.words for entry in retrieve.entries(features, ("index_reduction",), SPACE, rng, knowledge=off)]
    titles = [entry.title for entry in ENTRIES.values()]
    assert not any(word.startswith(title) for word in words for title in titles)


def test_without_neighbours_an_operator_is_like_any_other(operators: Operators) -> None:
    argmax = operators.by_key["argmax"]
    near, far = operators.neighbours(argmax), operators.without_neighbours().neighbours(argmax)
    assert {other.family for other in near} == {argmax.family} and len({other.family for other in far[:20]}) > 3
    assert set(near) <= set(far) and all(other.arities & argmax.arities for other in far)
    assert len(operators.without_neighbours()) == len(operators)


def test_a_pattern_that_finds_something_is_preferred_and_only_it() -> None:
    made = schedule()
    names = sorted(WEIGHTS)[:40]
    assert made.entry_odds() == {}, "all stand at their weights"
    for _ in range(30):
        made.learn(run(1.0, names[0]))
        made.learn(run(0.0, names[1]))
    odds = made.entry_odds()
    assert set(odds) == {names[0], names[1]}
    assert odds[names[0]][0] > WEIGHTS[names[0]] and odds[names[1]][0] < WEIGHTS[names[1]]
    first = [made.rank_entries(names, random.Random(seed))[0] for seed in range(100)]
    assert first.count(names[0]) > 80
    assert sorted(made.rank_entries(names, random.Random(1))) == names


def test_weights_are_priors() -> None:
    made = Schedule(SPACE, ["scan"], {"scan": ["cumsum"]}, ["dtype"], 1, entries={"light": 0.5, "heavy": 3.0})
    first = [made.rank_entries(["light", "heavy"], random.Random(seed))[0] for seed in range(200)]
    assert first.count("heavy") > 110


def test_arms_of_entries_survive_a_snapshot_and_ranking_leaves_no_trace() -> None:
    made = schedule()
    made.learn(run(0.4, "beta-zero"))
    saved = made.to_map()
    made.rank_entries(sorted(WEIGHTS), random.Random(1))
    assert made.to_map() == saved
    again = Schedule.from_map(saved, SPACE, ["scan"], {"scan": ["cumsum"]}, ["dtype"], entries=WEIGHTS)
    assert again.to_map() == saved and again.entry_odds() == made.entry_odds()
    del saved["entries"]  # of an earlier version
    assert (
        Schedule.from_map(saved, SPACE, ["scan"], {"scan": ["cumsum"]}, ["dtype"], entries=WEIGHTS).entry_odds() == {}
    )


def test_an_entry_is_credited_where_its_features_are(operators: Operators) -> None:
    state = LoopState(operators, SPACE, 1)
    entry = next(item for item in ENTRIES.values() if item.brings and not item.refused)
    refused = next(item for item in ENTRIES.values() if item.refused)
    named = [entry.id, entry.id, refused.id, "no such entry"]
    assert state.realised_entries(named, frozenset(entry.brings)) == (entry.id, refused.id)
    assert state.realised_entries(named, frozenset()) == (refused.id,)


def test_what_changed_is_raised_for_good(operators: Operators) -> None:
    raised = {"cumsum": 3.0, "scan": 2.0, "beta-zero": 2.0, "no such arm": 9.0}
    state = LoopState(operators, SPACE, 1, raised=raised)
    made = state.schedule
    assert made.families.multiplier("scan") == 2.0 and made.entries.multiplier("beta-zero") == 2.0
    assert made.operators["scan"].multiplier("cumsum") == 3.0 and made.operators["scan"].multiplier("cumprod") == 1.0
    other = LoopState(operators, SPACE, 1, raised=raised)
    other.restore(state.to_map())
    assert other.to_map() == state.to_map() and other.schedule.operators["scan"].multiplier("cumsum") == 3.0


def test_ranking_every_entry_stays_within_the_budget_of_a_decision() -> None:
    made, names = schedule(), sorted(WEIGHTS)
    for number, name in enumerate(names):
        made.learn(run(float(number % 7 == 0), name))
    started = time.process_time()
    for seed in range(20):
        made.rank_entries(names, random.Random(seed))
        made.entry_odds()
    print(f"{1000 * (time.process_time() - started) / 20:.2f} ms for {len(names)} entries")
    assert len(made.entry_odds()) == len(names)
