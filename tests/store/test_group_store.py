import pytest

from fuzzer.exits import Exit, UserError
from fuzzer.grouping import Decisions
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.groups import GroupStore


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
