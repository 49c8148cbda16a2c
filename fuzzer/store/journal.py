"""The journal: an append-only file of checksummed records, the truth about a campaign; and its snapshot.

A frame is a little-endian u32 length, the u32 CRC-32 of the body, and the body: one msgpack map. Each is
appended by one write, so a killed process loses nothing it was told is stored, and at most the last frame is
torn.
"""

from __future__ import annotations

import os
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgpack

from fuzzer.store import atomic

_HEADER = struct.Struct("<II")

#: A longer frame is taken as damage. The largest real record, a first coverage delta, is about 2 MB.
MAX_RECORD = 64 << 20

#: How far behind a bad frame a sound one is looked for, to tell damage in the middle from a torn tail.
_SEARCH_WINDOW = 16 << 20

#: Bodies begin with one of msgpack's map markers; this makes the search fast.
_MAP_MARKER = re.compile(rb"[\x80-\x8f\xde\xdf]")


class Journal:
    """An open journal. There is one writer a file (the holder of the campaign's lock).

    ``warnings`` says what was mended while opening, one line each. ``size`` is the length in bytes, and the
    offset that a snapshot of the present state carries.

    The kernel holds every appended record, so only a power failure can lose some: at most the last
    ``fsync_seconds``.
    """

    def __init__(self, path: Path, fsync_seconds: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._fsync_seconds = fsync_seconds
        self._clock = clock
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self.size = self._mend()
        except BaseException:
            os.close(self._descriptor)
            raise
        self._synced_at = clock()
        self._synced_size = self.size

    def append(self, record: Mapping[str, Any]) -> int:
        """Store one record; returns the offset behind it.

        Raises ``OSError`` when the disk is full (the journal is then as before) and ``ValueError`` for a
        record above ``MAX_RECORD``.
        """
        frame = pack_frame(record)
        written = 0
        try:
            written = os.write(self._descriptor, frame)
        finally:
            if written != len(frame):
                os.ftruncate(self._descriptor, self.size)
        if written != len(frame):
            raise OSError(28, f"only {written} of {len(frame)} bytes fitted on the disk", str(self.path))
        self.size += len(frame)
        if self._clock() - self._synced_at >= self._fsync_seconds:
            self.sync()
        return self.size

    def replay(self, from_offset: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """The records behind an offset, each with the offset behind it. See ``read_journal``."""
        return read_journal(self.path, from_offset)

    def sync(self) -> None:
        """Push what was appended to the disk itself."""
        if self._synced_size != self.size:
            os.fsync(self._descriptor)
            self._synced_size = self.size
        self._synced_at = self._clock()

    def close(self) -> None:
        """Sync and close; harmless when repeated."""
        if self._descriptor >= 0:
            self.sync()
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _mend(self) -> int:
        """Cut off what is not sound; returns the sound length."""
        length = os.fstat(self._descriptor).st_size
        sound = 0
        with open(self.path, "rb") as stream:
            while (body := _read_frame(stream)) is not None:
                sound += _HEADER.size + len(body)
            if sound == length:
                return length
            stream.seek(sound)
            behind = stream.read(_SEARCH_WINDOW)
        tail = length - sound
        follows = _find_frame(behind)
        if follows is None and tail <= _HEADER.size + MAX_RECORD:
            self.warnings.append(f"{self.path}: dropped a torn record of {tail} bytes at offset {sound}")
        else:
            damaged = self._set_aside(sound)
            self.warnings.append(
                f"{self.path}: damaged at offset {sound}; the {sound} bytes before it are kept, "
                f"the {tail} bytes from there on are moved to {damaged.name}"
            )
        os.ftruncate(self._descriptor, sound)
        os.fsync(self._descriptor)
        return sound

    def _set_aside(self, offset: int) -> Path:
        number = 1
        while (target := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        temporary = atomic.temporary_beside(target)
        with open(self.path, "rb") as source, open(temporary, "wb") as copy:
            source.seek(offset)
            while chunk := source.read(1 << 20):
                copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(temporary, target)
        return target


def read_journal(path: Path, from_offset: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records of a journal, also of one that is being written: ends at the first frame that is not whole.

    Yields ``(offset behind the record, record)``. ``from_offset`` must be 0 or an offset that was yielded
    before; raises ``ValueError`` when it lies outside the file.
    """
    with open(path, "rb") as stream:
        length = os.fstat(stream.fileno()).st_size
        if not 0 <= from_offset <= length:
            raise ValueError(f"offset {from_offset} is outside the journal of {length} bytes")
        stream.seek(from_offset)
        offset = from_offset
        while (body := _read_frame(stream)) is not None:
            offset += _HEADER.size + len(body)
            yield offset, _unpack(body)


def pack_frame(record: Mapping[str, Any]) -> bytes:
    """One frame. Raises ``ValueError`` above ``MAX_RECORD``, ``TypeError`` for what msgpack cannot hold."""
    body = msgpack.packb(dict(record), use_bin_type=True, unicode_errors="surrogatepass")
    if len(body) > MAX_RECORD:
        raise ValueError(f"a record of {len(body)} bytes; the largest allowed is {MAX_RECORD}")
    return _HEADER.pack(len(body), zlib.crc32(body)) + body


def _unpack(body: bytes) -> dict[str, Any]:
    record: dict[str, Any] = msgpack.unpackb(body, raw=False, strict_map_key=False, unicode_errors="surrogatepass")
    return record


def _read_frame(stream: Any) -> bytes | None:
    """Body of the frame at the stream's position, or None where there is no sound one."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    length, checksum = _HEADER.unpack(header)
    if not 0 < length <= MAX_RECORD:  # zeros, as after a power failure, would else pass as empty sound frames
        return None
    body: bytes = stream.read(length)
    if len(body) < length or zlib.crc32(body) != checksum or not _MAP_MARKER.match(body):
        return None
    return body


def _find_frame(data: bytes) -> int | None:
    """Position of a sound frame in ``data``, or None."""
    for match in _MAP_MARKER.finditer(data, _HEADER.size):
        start = match.start() - _HEADER.size
        length, checksum = _HEADER.unpack_from(data, start)
        body = memoryview(data)[match.start() : match.start() + length]
        if 0 < length <= MAX_RECORD and len(body) == length and zlib.crc32(body) == checksum:
            return start
    return None


class Snapshot:
    """A cached state of the campaign, with the journal's offset up to which it holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    def write(self, state: Mapping[str, Any], offset: int) -> None:
        """Replace the snapshot. ``offset`` is the journal's ``size`` when ``state`` was taken."""
        atomic.write_bytes(self.path, pack_frame({"offset": offset, "state": dict(state)}))

    def read(self, journal_size: int) -> tuple[dict[str, Any], int] | None:
        """``(state, offset)``, or None: absent, damaged, or ahead of a journal that lost its end.

        The last two leave a line in ``warnings``; the journal then replays from its beginning.
        """
        try:
            with open(self.path, "rb") as stream:
                body = _read_frame(stream)
                extra = stream.read(1)
        except FileNotFoundError:
            return None
        record = _unpack(body) if body is not None and not extra else {}
        state, offset = record.get("state"), record.get("offset")
        if not isinstance(state, dict) or not isinstance(offset, int):
            self.warnings.append(f"{self.path}: damaged; ignored, the whole journal is replayed")
            return None
        if offset > journal_size:
            self.warnings.append(
                f"{self.path}: ahead of the journal ({offset} > {journal_size} bytes); ignored, "
                "the whole journal is replayed"
            )
            return None
        return state, offset
