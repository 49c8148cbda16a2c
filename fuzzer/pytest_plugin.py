"""Replay a corpus on the build at hand, from pytest: every program is a test.

``pytest --eddy PATH`` collects the programs of PATH, and nothing else unless test paths are named as well. With
``eddy_paths`` in the configuration they join every run that names no paths itself. A program runs as under ``eddy
exec``: eagerly and compiled, in a fresh child of a fork server, judged, suspects past every gate. Nothing of it is ever
imported into pytest's own process. Without option or setting this module does nothing, and imports nothing of Eddy.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import asyncio

    from fuzzer.examine import Examined
    from fuzzer.program import Program
    from fuzzer.worker import Worker

#: Name under which what collects is registered, once asked for.
_REPLAY = "eddy-replay"

#: What of a campaign directory holds programs that are worth a replay.
_CAMPAIGN = ("findings", "hangs", "corpus")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("eddy", "replay of programs for torch.compile")
    group.addoption(
        "--eddy",
        action="append",
        metavar="PATH",
        help="replay programs: a file, a folder of them, a campaign's directory, or its findings or corpus",
    )
    group.addoption(
        "--eddy-target", metavar="PYTHON", help="interpreter with the torch to replay on (default: this one)"
    )
    parser.addini("eddy_paths", "programs to replay in every run that names no paths itself", type="paths", default=[])
    parser.addini("eddy_target", "interpreter with the torch to replay on (default: this one)", default="")


def pytest_configure(config: pytest.Config) -> None:
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    given = [config.invocation_params.dir / path for path in config.option.eddy or []]
    paths = given or ([] if named else config.getini("eddy_paths"))
    if paths:
        target = config.option.eddy_target or config.getini("eddy_target") or sys.executable
        if not config.option.collectonly:
            _require_compiler(target)
        config.pluginmanager.register(Replay(paths, bool(given) and not named, target), _REPLAY)


def _require_compiler(target: str) -> None:
    from fuzzer.cli.common import FAKE, require_compiler
    from fuzzer.exits import UserError

    try:
        if target != FAKE:
            require_compiler()
    except UserError as error:
        raise pytest.UsageError(str(error)) from None


@dataclass(frozen=True)
class Source:
    """One program to be: its text, the file that it is in, and a name that is unique in its corpus."""

    name: str
    file: Path
    text: str


def sources(path: Path) -> Iterator[Source]:
    """Programs of a file or folder, in order of their names; files below a folder that are no programs are left out.

    A folder with a ``finding.json`` is one program, the smallest that shows the finding. Raises ``ValueError`` with one
    line for a path that does not exist, and for a file that is no program.
    """
    from fuzzer.program import Program

    if path.is_file():
        text = path.read_text(encoding="utf-8")
        Program.parse(text, str(path))
        yield Source(path.name, path, text)
    elif path.is_dir():
        yield from _below(path, path)
    else:
        raise ValueError(f"{path}: no such file or folder")


def _below(folder: Path, top: Path) -> Iterator[Source]:
    from fuzzer.exits import UserError
    from fuzzer.program import Program
    from fuzzer.store.corpus_files import CorpusFiles

    name = folder.relative_to(top).as_posix() if folder != top else folder.name
    if (folder / "finding.json").is_file():
        yield Source(name, folder / "finding.json", _finding_text(folder / "finding.json"))
        return
    if (folder / "campaign.toml").is_file():
        for part in _CAMPAIGN:
            if (folder / part).is_dir():
                yield from _below(folder / part, top)
        return
    seeds = CorpusFiles(folder)
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _below(path, top)
        elif path.stem in seeds and path.suffix == ".msgpack":
            if (seed := seeds.read(path.stem)) is not None:
                yield Source(path.relative_to(top).with_suffix("").as_posix(), path, seed["text"])
        elif path.suffix == ".py":
            try:
                text = path.read_text(encoding="utf-8")
                Program.parse(text, str(path))
            except (UserError, OSError, UnicodeDecodeError):
                continue
            yield Source(path.relative_to(top).as_posix(), path, text)


def _finding_text(file: Path) -> str:
    import json

    from fuzzer.finding import Finding

    try:
        return Finding.from_map(json.loads(file.read_text(encoding="utf-8"))).shown_text
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file}: not a finding ({error})") from None


class Replay:
    """The plugin proper: adds the programs to the session, keeps the fork server that they run in."""

    def __init__(self, paths: list[Path], only: bool, target: str) -> None:
        self.paths = paths
        self.only = only
        self.build = Build(target)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            added = [Corpus.from_parent(collector, path=path, build=self.build) for path in self.paths]
            report.result = added if self.only else [*report.result, *added]
        return report

    def pytest_report_header(self) -> str:
        return f"eddy: {', '.join(map(str, self.paths))} on {self.build.python}"

    def pytest_sessionfinish(self) -> None:
        self.build.stop()


class Corpus(pytest.File):
    """The programs of one path, a file or a folder."""

    def __init__(self, *, build: Build, **rest: Any) -> None:
        super().__init__(**rest)
        self.build = build

    def collect(self) -> Iterator[pytest.Item]:
        from fuzzer.exits import UserError

        try:
            found = list(sources(self.path))
        except (UserError, ValueError, OSError) as error:
            raise self.CollectError(f"eddy: {error}") from None
        if not found:
            raise self.CollectError(f"eddy: {self.path}: no program in it; a program defines build_inputs and fn")
        for source in found:
            yield Replayed.from_parent(self, name=source.name, source=source, build=self.build)


class Failed(Exception):
    """A program failed on this build; ``str`` is what a person reads."""


class Replayed(pytest.Item):
    """One program. Fails where Eddy would keep a finding; what says nothing about the build is skipped."""

    def __init__(self, *, source: Source, build: Build, **rest: Any) -> None:
        super().__init__(**rest)
        self.path = source.file
        self.source = source
        self.build = build

    def runtest(self) -> None:
        from fuzzer.program import Program
        from fuzzer.verdict import Kind

        build = self.build
        seen = build.examine(Program.parse(self.source.text, str(self.source.file)))
        verdict = seen.verdict
        self.user_properties += [("eddy_kind", verdict.kind.value), ("eddy_torch", build.torch)]
        if verdict.is_suspect:
            self.user_properties.append(("eddy_signature", seen.signature.major))
            if verdict.debatable:
                pytest.skip(f"debatable: {verdict.debatable}: {verdict.reason}")
            if issue := build.known_issue(seen):
                pytest.xfail(f"known issue {issue}: {verdict.reason}")
            raise Failed(self._told(seen))
        if verdict.kind is Kind.HARNESS_ERROR:
            raise Failed(f"the harness failed, not the program: {verdict.reason}")
        if verdict.kind is not Kind.PASS:
            pytest.skip(f"{verdict.kind.value}: {verdict.reason}")

    def _told(self, seen: Examined) -> str:
        verdict = seen.verdict
        where = f" at {verdict.stage}" if verdict.stage else ""
        lines = [
            f"{verdict.kind.value}{where}: {verdict.reason}",
            f"  program:   {self.source.file}",
            f"  torch:     {self.build.torch} ({self.build.python})",
            f"  signature: {seen.signature.major}",
        ]
        lines += [f"  checked:   {gate}: {outcome}" for gate, outcome in verdict.gates]
        return "\n".join(lines)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Failed):
            from fuzzer.page.finding_view import visible

            return visible(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.source.file, None, f"eddy: {self.name}"


class Build:
    """The build under test: one fork server for the session, started by the first program that needs it."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.torch = ""
        self._refused = ""
        self._worker: Worker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._folder: Path | None = None

    def examine(self, program: Program) -> Examined:
        """Execute, judge, gates. Raises ``Failed`` when the target does not start; it is tried once only."""
        import asyncio
        import tempfile

        from fuzzer.cli.common import target
        from fuzzer.examine import examine
        from fuzzer.worker import TargetRefused, Worker, WorkerOptions

        if self._refused:
            raise Failed(self._refused)
        try:
            if self._worker is None or self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._folder = Path(tempfile.mkdtemp(prefix="eddy-replay-"))
                options = WorkerOptions(coverage=())
                self._worker = Worker(target(self.python, "cpu"), self._folder / "worker", options)
                ready = self._loop.run_until_complete(self._worker.start())
                self.torch = str(ready["target"]["torch"])
            return self._loop.run_until_complete(examine(self._worker, program))
        except TargetRefused as error:
            self._refused = str(error)
            raise Failed(self._refused) from None

    def known_issue(self, seen: Examined) -> str:
        """Identifier of the known issue that a failure looks like, or empty."""
        from fuzzer.known_issues import KnownIssues

        ops = seen.observation.ops
        dtypes = {str(row[0]) for op in ops for row in [*op.get("tensors", []), *op.get("outputs", [])]}
        cause = f"{seen.signature.minor}\n{seen.verdict.reason}"
        operators, text = seen.observation.operators, seen.program.text
        found = KnownIssues.load().match(seen.verdict.kind, operators, sorted(dtypes), cause, text, self.torch)
        return found.id if found else ""

    def stop(self) -> None:
        import shutil

        if self._worker is not None and self._loop is not None:
            self._loop.run_until_complete(self._worker.stop())
        if self._loop is not None:
            self._loop.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._worker = self._loop = self._folder = None
