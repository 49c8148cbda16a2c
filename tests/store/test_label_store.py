import multiprocessing

import pytest

from fuzzer.exits import Exit, UserError
from fuzzer.labels import Judgement, Label, Labels
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.labels import LabelStore


@pytest.fixture
def directory(tmp_path):
    return CampaignDirectory.create(tmp_path / "campaign", {})


def test_labels_outlive_the_process(directory):
    assert LabelStore(directory).read() == Labels()
    made = LabelStore(directory).change(lambda labels: labels.with_label("a", Judgement(Label.REAL, why="é\ud800")))
    assert len(made) == 1
    assert LabelStore(directory).read().get("a").label is Label.REAL


def test_a_damaged_file_is_named_and_never_replaced(directory):
    directory.labels.write_text("{")
    with pytest.raises(UserError, match=r"labels\.json") as caught:
        LabelStore(directory).change(lambda labels: labels)
    assert caught.value.exit_code == Exit.DIRECTORY
    assert directory.labels.read_text() == "{"


def test_an_edit_that_fails_changes_nothing(directory):
    store = LabelStore(directory)
    store.change(lambda labels: labels.with_label("a", Judgement(Label.REAL)))
    with pytest.raises(ValueError):
        store.change(lambda labels: labels.with_label("a", Judgement(Label.DUPLICATE_OF, "a")))
    assert store.read().get("a").label is Label.REAL


def _label_many(path, prefix):
    store = LabelStore(CampaignDirectory.open(path))
    for number in range(10):
        store.change(lambda labels, name=f"{prefix}{number}": labels.with_label(name, Judgement(Label.REAL)))


def test_two_who_label_at_once_lose_nothing(directory):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_label_many, args=(directory.path, prefix)) for prefix in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(LabelStore(directory).read()) == 20


def test_the_findings_folder_stays_readable_with_labels_in_it(directory):
    from fuzzer.store.findings import FindingStore

    LabelStore(directory).change(lambda labels: labels.with_label("a", Judgement(Label.REAL)))
    store = FindingStore(directory)
    assert store.load_all() == [] and store.warnings == []
