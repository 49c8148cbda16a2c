import pytest

from fuzzer.program import Program
from fuzzer.store.corpus_files import Added, CorpusFiles, content_id

SEED = {
    "text": "import torch\n",
    "meta": {"mode": "forward"},
    "parents": ["a"],
    "coverage": {"native": {"x.so": [1, 2]}},
}


def test_seeds_read_back_and_survive_reopening(tmp_path):
    corpus = CorpusFiles(tmp_path / "corpus")
    assert corpus.add(SEED) is Added.STORED
    assert corpus.add({**SEED, "meta": {}}) is Added.PRESENT
    assert corpus.add({"text": "other"}) is Added.STORED
    again = CorpusFiles(tmp_path / "corpus")
    assert len(again) == 2 and again.bytes == corpus.bytes
    assert again.read(content_id(SEED["text"])) == SEED
    assert sorted(seed["text"] for seed in again) == ["import torch\n", "other"]


def test_the_name_is_the_identifier_of_the_program():
    text = "def build_inputs():\n    return ()\n\ndef fn():\n    return 1\n"
    assert content_id(text) == Program.parse(text).id


@pytest.mark.parametrize("damage", [
    lambda packed: packed[: len(packed) // 2],
    lambda packed: packed.replace(b"forward", b"forwarD"),
    lambda packed: b"",
    lambda packed: b"\x01",
])  # fmt: skip
def test_a_damaged_seed_is_named_and_skipped(tmp_path, damage):
    corpus = CorpusFiles(tmp_path)
    corpus.add(SEED)
    corpus.add({"text": "sound"})
    path = corpus.path(content_id(SEED["text"]))
    path.write_bytes(damage(path.read_bytes()))
    assert [seed["text"] for seed in corpus] == ["sound"]
    [warning] = corpus.warnings
    assert str(path) in warning and "skipped" in warning


def test_the_folder_is_bounded_and_removal_makes_room(tmp_path):
    corpus = CorpusFiles(tmp_path, max_bytes=300)
    assert corpus.add({"text": "a" * 200}) is Added.STORED
    assert corpus.add({"text": "b" * 200}) is Added.FULL
    corpus.remove(content_id("a" * 200))
    assert corpus.bytes == 0
    assert corpus.add({"text": "b" * 200}) is Added.STORED
