"""Runs a script in the target under the recorder (effects)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fuzzer.exits import Exit, UserError
from fuzzer.seeds.recorded import Recording, read_recording
from fuzzer.staging import stage_harness


def record_script(python: str, script: str, arguments: Sequence[str], folder: Path) -> tuple[int, Recording]:
    """Run ``python SCRIPT ARGS`` as it is, its streams, environment and folder being the caller's.

    ``torch.compile`` does nothing meanwhile, so that the calls are seen one by one.

    Returns:
        The script's exit status (negative: ended by that signal), and what was recorded till then.

    Raises:
        UserError: no such script; the target is no executable, or cannot import torch.
    """
    if not Path(script).is_file():
        raise UserError(f"{script}: no such script")
    if shutil.which(python) is None:
        raise UserError(f"target {python!r} is not an executable; pass --target /path/to/python", Exit.TARGET)
    recorder = stage_harness(folder) / "harness" / "tracing.py"
    record = folder / "record.jsonl"
    environment = {**os.environ, "TORCH_COMPILE_DISABLE": "1"}
    status = subprocess.run([python, str(recorder), str(record), script, *arguments], env=environment).returncode
    if not record.exists():
        raise UserError(f"target {python} could not start the recorder (see above); does it have torch?", Exit.TARGET)
    return status, read_recording(record)
