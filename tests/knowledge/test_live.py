"""Which operators a campaign uses: those that ship where the release fits, else derived once and kept."""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from fuzzer.knowledge import live
from fuzzer.knowledge.operators import EXTRACT, Operators
from fuzzer.store.directory import CampaignDirectory
from fuzzer.worker import Target

RECORDS = msgpack.unpackb(zlib.decompress(EXTRACT.read_bytes()), raw=False)["operators"][:7]


class _Worker:
    """Stands in for a worker on a target whose torch is of another release."""

    starts = 0

    def __init__(self, *arguments: Any) -> None:
        pass

    async def start(self) -> dict[str, Any]:
        _Worker.starts += 1
        return {"target": {"torch": "2.9.0", "device": "cpu"}}

    async def catalogue(self, progress: Any) -> AsyncIterator[dict[str, Any]]:
        progress("7 operators")
        for record in RECORDS:
            yield record

    async def stop(self) -> None:
        pass

    def discard(self) -> None:
        pass


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(live, "Worker", _Worker)
    _Worker.starts = 0
    directory = CampaignDirectory.create(tmp_path / "c", {})
    notes: list[str] = []

    def operators(script: str) -> tuple[Operators, list[str], CampaignDirectory]:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        notes.clear()
        found = asyncio.run(live.operators_for(Target(str(python)), directory, lambda kind, text: notes.append(text)))
        return found, notes, directory

    return operators


def test_builds_of_the_shipped_release_take_what_ships(ask: Any) -> None:
    shipped = Operators.load_extract()
    for version in (shipped.fingerprint["torch"], "2.13.0+cu130", "2.13.0"):
        found, notes, directory = ask(f"echo {version}")
        assert len(found) == len(shipped) and not notes and not directory.operators.exists()


def test_another_release_is_derived_once_and_kept(ask: Any) -> None:
    found, notes, directory = ask("echo 2.9.0+cpu")
    assert len(found) == len(RECORDS) and found.fingerprint["torch"] == "2.9.0"
    assert "deriving its operators" in notes[0] and notes[1] == "7 operators"
    again, notes, _ = ask("echo 2.9.0+cpu")
    assert list(again.by_key) == list(found.by_key) and not notes and _Worker.starts == 1
    directory.operators.write_bytes(b"damaged")
    mended, notes, _ = ask("echo 2.9.0+cpu")
    assert len(mended) == len(RECORDS) and "deriving again" in notes[0] and _Worker.starts == 2


def test_a_target_that_says_nothing_is_left_to_the_start(ask: Any) -> None:
    found, notes, _ = ask("exit 1")
    assert len(found) == len(Operators.load_extract()) and not notes


def test_the_version_of_this_interpreter() -> None:
    assert asyncio.run(live.torch_version("/nowhere/python")) == ""
    version = asyncio.run(live.torch_version(sys.executable))
    assert version == "" or version[0].isdigit()
