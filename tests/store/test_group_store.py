import pytest

from fuzzer.exits import Exit, UserError
from fuzzer.grouping import Decisions
from fuzzer.labels import Judgement, Label
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.groups import GroupStore, decided
from fuzzer.store.labels import LabelStore


@pytest.fixture
def store(tmp_path):
    return GroupStore(CampaignDirectory.create(tmp_path / "camp", {}))


def test_what_is_decided_is_there_the_next_time(store):
    assert store.read() == Decisions()
    store.change(lambda present: present.merge(["a", "b"]).alone("c"))
    assert store.read() == Decisions((frozenset("ab"),), frozenset("c"))
    assert store.path.parent.name == "findings"


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "merged": 3, "split": []}'])
def test_a_damaged_file_is_refused_and_never_replaced(store, text):
    store.path.write_text(text)
    with pytest.raises(UserError) as caught:
        store.change(lambda present: present.alone("a"))
    assert caught.value.exit_code == Exit.DIRECTORY
    assert store.path.read_text() == text


def test_a_label_that_says_duplicate_merges_unless_split(store):
    directory = CampaignDirectory.open(store.path.parent.parent)
    labels = LabelStore(directory)
    labels.change(lambda present: present.with_label("a", Judgement(Label.DUPLICATE_OF, "b", "", 1)))
    labels.change(lambda present: present.with_label("c", Judgement(Label.REAL, "", "", 1)))
    assert decided(directory) == Decisions((frozenset("ab"),))
    for apart in "ab":
        store.change(lambda present, apart=apart: Decisions().alone(apart))
        assert decided(directory) == Decisions((), frozenset(apart))
