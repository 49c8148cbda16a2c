"""Seeds on disk: one immutable file each, named by the content address of its program."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import msgpack

from fuzzer.store import atomic

_SUFFIX = ".msgpack"


class Added(Enum):
    """What became of a seed that was offered."""

    STORED = "stored"
    PRESENT = "present"  # the same text is there already; seeds never change
    FULL = "full"  # the folder has reached its bound


class CorpusFiles:
    """The folder ``corpus/``.

    A seed is a map with ``text`` (the whole program) and whatever the corpus keeps beside it: ``meta``,
    ``parents``, ``engine``, ``features``, ``coverage``… (plain data only). ``max_bytes`` bounds the folder; 2
    GiB hold about 200,000 seeds of 10 kB. ``warnings`` names files that were skipped, one line each.
    """

    def __init__(self, folder: Path, max_bytes: int = 2 << 30) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.warnings: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._sizes = {path.stem: path.stat().st_size for path in folder.glob("[!.]*" + _SUFFIX)}
        self.bytes = sum(self._sizes.values())

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, seed_id: object) -> bool:
        return seed_id in self._sizes

    @property
    def ids(self) -> list[str]:
        """Identifiers of all seeds, sorted."""
        return sorted(self._sizes)

    def path(self, seed_id: str) -> Path:
        return self.folder / (seed_id + _SUFFIX)

    def add(self, seed: Mapping[str, Any]) -> Added:
        """Keep a seed. Raises ``KeyError`` without ``text``, ``TypeError`` unless all is plain data."""
        seed_id = content_id(seed["text"])
        if seed_id in self._sizes:
            return Added.PRESENT
        body = {key: value for key, value in seed.items() if key != "crc"}
        packed = msgpack.packb({**body, "crc": zlib.crc32(msgpack.packb(body))})
        if self.bytes + len(packed) > self.max_bytes:
            return Added.FULL
        atomic.write_bytes(self.path(seed_id), packed)
        self._sizes[seed_id] = len(packed)
        self.bytes += len(packed)
        return Added.STORED

    def read(self, seed_id: str) -> dict[str, Any] | None:
        """One seed, or None when it is absent or damaged (damage leaves a line in ``warnings``)."""
        path = self.path(seed_id)
        try:
            seed = _checked(path.read_bytes(), seed_id)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.warnings.append(f"{path}: skipped ({error}); delete it")
            return None
        return seed

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All sound seeds in the order of their identifiers, one in memory at a time."""
        for seed_id in self.ids:
            seed = self.read(seed_id)
            if seed is not None:
                yield seed

    def remove(self, seed_id: str) -> None:
        """Drop a seed (corpus minimisation, a disk that fills up); harmless when it is absent."""
        self.path(seed_id).unlink(missing_ok=True)
        self.bytes -= self._sizes.pop(seed_id, 0)


def content_id(text: str) -> str:
    """The program's identifier: the first 16 hexadecimal digits of its text's SHA-256 (as ``Program.id``)."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _checked(packed: bytes, seed_id: str) -> dict[str, Any]:
    try:
        seed = msgpack.unpackb(packed, raw=False, strict_map_key=False)
    except Exception as error:  # msgpack raises several unrelated classes on garbage
        raise ValueError(f"not msgpack: {error}") from None
    if not isinstance(seed, dict) or not isinstance(seed.get("text"), str):
        raise ValueError("not a map with a text")
    checksum = seed.pop("crc", None)
    if checksum != zlib.crc32(msgpack.packb(seed)):
        raise ValueError("the checksum does not match")
    if content_id(seed["text"]) != seed_id:
        raise ValueError("the text is not the one its name promises")
    return seed
