import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.store.journal import Journal, Snapshot, pack_frame, read_journal

RECORDS = [{"n": n, "text": "x" * n, "list": [1, "two", None, 3.5, b"\x80\x81"]} for n in range(20)]

_records = st.lists(
    st.dictionaries(st.text(max_size=4), st.integers(-9, 9) | st.text(max_size=9) | st.binary(max_size=9)), max_size=6
)


def written(path, records):
    with Journal(path) as journal:
        return [journal.append(record) for record in records]


def test_replay_gives_back_what_was_appended_from_any_offset(tmp_path):
    path = tmp_path / "journal"
    offsets = written(path, RECORDS)
    with Journal(path) as journal:
        assert journal.warnings == []
        assert list(journal.replay()) == list(zip(offsets, RECORDS))
        assert [record for _, record in journal.replay(offsets[11])] == RECORDS[12:]
        with pytest.raises(ValueError, match="outside"):
            list(journal.replay(offsets[-1] + 1))


@given(_records, st.data())
def test_a_cut_at_any_byte_loses_only_the_torn_record(records, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        offsets = [0, *written(path, records)]
        cut = data.draw(st.integers(0, offsets[-1]))
        path.write_bytes(path.read_bytes()[:cut])
        whole = sum(offset <= cut for offset in offsets) - 1
        with Journal(path) as journal:
            assert [record for _, record in journal.replay()] == records[:whole]
            assert bool(journal.warnings) == (cut not in offsets)
            journal.append({"after": 1})
        assert [record for _, record in read_journal(path)] == [*records[:whole], {"after": 1}]
        assert [entry.name for entry in Path(folder).iterdir()] == ["journal"]


@pytest.mark.parametrize("at", ["length", "checksum", "body"])
def test_damage_in_the_middle_is_set_aside_not_lost(tmp_path, at):
    path = tmp_path / "journal"
    offsets = written(path, RECORDS)
    content = bytearray(path.read_bytes())
    content[offsets[9] + {"length": 2, "checksum": 5, "body": 12}[at]] ^= 0xFF
    path.write_bytes(content)
    with Journal(path) as journal:
        assert [record for _, record in journal.replay()] == RECORDS[:10]
        [warning] = journal.warnings
    assert f"offset {offsets[9]};" in warning
    damaged = path.with_name("journal.damaged-1")
    assert damaged.name in warning
    assert damaged.read_bytes() == bytes(content[offsets[9] :])


def test_zeros_after_a_power_failure_are_no_records(tmp_path):
    path = tmp_path / "journal"
    written(path, RECORDS)
    with open(path, "ab") as stream:
        stream.write(bytes(4096))
    with Journal(path) as journal:
        assert len(list(journal.replay())) == len(RECORDS)
        assert "dropped a torn record of 4096 bytes" in journal.warnings[0]


def test_a_short_write_leaves_the_journal_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    written(path, RECORDS)
    before = path.read_bytes()
    journal = Journal(path)
    from fuzzer.store import journal as module

    write = module.os.write
    monkeypatch.setattr(module.os, "write", lambda descriptor, data: write(descriptor, data[:5]))
    with pytest.raises(OSError, match="5 of"):
        journal.append({"big": "x" * 100})
    monkeypatch.undo()
    journal.close()
    assert path.read_bytes() == before


def test_fsync_comes_with_the_clock_and_at_close(tmp_path, monkeypatch):
    from fuzzer.store import journal as module

    synced = []
    monkeypatch.setattr(module.os, "fsync", synced.append)
    now = [0.0]
    with Journal(tmp_path / "journal", fsync_seconds=5, clock=lambda: now[0]) as journal:
        journal.append({"a": 1})
        assert len(synced) == 0
        now[0] = 5.0
        journal.append({"a": 2})
        assert len(synced) == 1
        journal.append({"a": 3})
    assert len(synced) == 2


def test_snapshot_reads_back_and_distrusts_itself(tmp_path):
    snapshot = Snapshot(tmp_path / "snapshot")
    assert snapshot.read(100) is None and snapshot.warnings == []
    snapshot.write({"arms": {"a": [1, 2.5]}}, offset=100)
    assert snapshot.read(100) == ({"arms": {"a": [1, 2.5]}}, 100)
    assert snapshot.read(99) is None
    assert "ahead of the journal" in snapshot.warnings.pop()
    content = bytearray(snapshot.path.read_bytes())
    content[-1] ^= 1
    snapshot.path.write_bytes(content)
    assert snapshot.read(100) is None
    assert "damaged" in snapshot.warnings.pop()


def test_frames_are_length_checksum_body():
    frame = pack_frame({})
    assert struct.unpack("<I", frame[:4]) == (1,) and frame[8:] == b"\x80"


APPEND = """
import os, sys
from pathlib import Path
from fuzzer.store.journal import Journal
journal = Journal(Path(sys.argv[1]))
n = sum(1 for _ in journal.replay())
while True:
    journal.append({"n": n, "pad": "x" * (n * 7919 % 5000)})
    os.write(1, b"%d\\n" % n)
    n += 1
"""


def test_kill_at_any_moment_loses_no_acknowledged_record(tmp_path):
    path = tmp_path / "journal"
    moments = random.Random(1)
    last = -1
    for _trial in range(10):
        with subprocess.Popen([sys.executable, "-c", APPEND, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it has begun to append
            time.sleep(moments.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().splitlines(keepends=True)
            last = max([last, *(int(line) for line in rest if line.endswith(b"\n"))])
    with Journal(path) as journal:
        numbers = [record["n"] for _, record in journal.replay()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > last >= 10
