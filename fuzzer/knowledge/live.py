"""The operators of the target at hand: the extract that ships where it fits, else derived once a campaign."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from fuzzer.exits import UserError
from fuzzer.knowledge.build import write_extract
from fuzzer.knowledge.operators import Operators
from fuzzer.store.directory import CampaignDirectory
from fuzzer.worker import Target, Worker, WorkerOptions

#: Asks the package's metadata, which takes milliseconds where importing torch takes seconds.
_ASK_VERSION = "from importlib.metadata import version; print(version('torch'))"
_ASK_SECONDS = 30.0


async def operators_for(target: Target, directory: CampaignDirectory, note: Callable[[str, str], None]) -> Operators:
    """Operators of the target's torch; what had to be derived is kept in the campaign directory.

    Raises:
        TargetRefused: the target does not start, or its operators cannot be derived.
    """
    shipped = Operators.load_extract()
    if target.fake:
        return shipped
    kept = directory.operators
    if kept.exists():
        try:
            return Operators.load_extract(kept)
        except UserError as error:
            note("warning", f"{error}; deriving again")
    version = await torch_version(target.python)
    if not version or _release(version) == _release(shipped.fingerprint.get("torch", "")):
        return shipped  # where the metadata say nothing, starting the target will say what is wrong
    note("worker", f"torch {version}: deriving its operators, once; this takes minutes")
    worker = Worker(target, directory.worker_tmp("knowledge"), WorkerOptions(coverage=(), warm=False))
    try:
        ready = await worker.start()
        records = [record async for record in worker.catalogue(lambda line: note("worker", line))]
    finally:
        await worker.stop()
        worker.discard()
    return write_extract(records, kept, {name: str(value) for name, value in ready["target"].items()})


async def torch_version(python: str) -> str:
    """Version of torch that an interpreter has installed; empty when it cannot say."""
    try:
        process = await asyncio.create_subprocess_exec(
            python, "-I", "-c", _ASK_VERSION, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return ""
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _ASK_SECONDS)
    except asyncio.TimeoutError:
        return ""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return output.decode("utf-8", "replace").strip() if process.returncode == 0 else ""


def _release(version: str) -> str:
    """``2.13.0+cpu`` → ``2.13.0``: builds of one release share their operators."""
    return version.partition("+")[0]
