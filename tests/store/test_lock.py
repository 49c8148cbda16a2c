import os
import subprocess
import sys

import pytest

from fuzzer.exits import Exit, UserError
from fuzzer.store.lock import CampaignLock, holder

HOLD = """
import sys
from pathlib import Path
from fuzzer.store.lock import CampaignLock
CampaignLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_second_opener_is_told_the_holder_and_a_killed_holder_leaves_no_lock(tmp_path):
    path = tmp_path / "LOCK"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        assert holder(path) == process.pid
        with pytest.raises(UserError, match=f"process {process.pid};") as caught:
            CampaignLock(path).acquire()
        assert caught.value.exit_code is Exit.DIRECTORY
        process.kill()
        process.wait()
        assert holder(path) is None
        with CampaignLock(path) as lock:
            assert lock.held
            assert holder(path) == os.getpid()
    assert holder(path) is None


def test_a_reused_pid_is_not_a_holder(tmp_path):
    path = tmp_path / "LOCK"
    path.write_text(f"{os.getpid()} 12.00\n")
    assert holder(path) is None
