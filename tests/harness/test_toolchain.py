"""The hastened C++ step: what is reused, what stays as users have it, what happens when something fails."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.toolchain import _OPENMP, Toolchain, _Call, _find_clang, _linked_with, _make_standins

SOURCE = 'extern "C" int answer() { return 42; }\n'

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")


class Builder:
    """What stands in for ``torch._inductor.cpp_builder``: runs the command, remembers it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def run_compile_cmd(self, cmd_line: str, cwd: str) -> Any:
        self.lines.append(cmd_line)
        return subprocess.run(shlex.split(cmd_line), cwd=cwd, check=True, capture_output=True).stdout


@pytest.fixture
def chain(tmp_path: Path) -> tuple[Toolchain, Builder]:
    made, builder = Toolchain(str(tmp_path / "shared")), Builder()
    os.makedirs(made._store)
    made._identity = b"some compiler"
    made._standins = ""
    made._wrap(builder)
    return made, builder


def line(folder: Path, text: str = SOURCE, extra: str = "") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cpp").write_text(text)
    return f"g++ {folder}/kernel.cpp -shared -fPIC {extra} -o {folder}/kernel.so"


def test_a_kernel_built_before_is_taken_from_the_store(tmp_path: Path, chain: tuple[Toolchain, Builder]) -> None:
    made, builder = chain
    made.begin(plain=False)
    builder.run_compile_cmd(line(tmp_path / "run"), str(tmp_path))
    assert made.cost.kernels == 1 and made.cost.reused == 0 and made.cost.cpu > 0
    made.keep(made.built, str(tmp_path / "run"))

    made.begin(plain=False)  # the next child: another folder, other comments
    builder.run_compile_cmd(line(tmp_path / "run2", "// another program\n" + SOURCE), str(tmp_path))
    assert made.cost.reused == 1 and not made.built
    assert (tmp_path / "run2" / "kernel.so").read_bytes() == (tmp_path / "run" / "kernel.so").read_bytes()
    assert len(builder.lines) == 1


@pytest.mark.parametrize(("text", "extra"), [(SOURCE.replace("42", "43"), ""), (SOURCE, "-O2")])
def test_another_text_or_flag_is_another_kernel(
    tmp_path: Path, chain: tuple[Toolchain, Builder], text: str, extra: str
) -> None:
    made, builder = chain
    for number, arguments in enumerate([(SOURCE, ""), (text, extra)]):
        made.begin(plain=False)
        builder.run_compile_cmd(line(tmp_path / f"run{number}", *arguments), str(tmp_path))
        made.keep(made.built, str(tmp_path / f"run{number}"))
    assert len(builder.lines) == 2


def test_plain_compiles_everything_as_it_was_asked(tmp_path: Path, chain: tuple[Toolchain, Builder]) -> None:
    made, builder = chain
    made.begin(plain=False)
    builder.run_compile_cmd(line(tmp_path / "run"), str(tmp_path))
    made.keep(made.built, str(tmp_path / "run"))
    made.begin(plain=True)
    asked = line(tmp_path / "run2")
    builder.run_compile_cmd(asked, str(tmp_path))
    assert builder.lines[-1] == asked and made.cost.reused == 0 and not made.built


def test_only_libraries_of_the_childs_own_folder_are_kept(tmp_path: Path, chain: tuple[Toolchain, Builder]) -> None:
    made, _builder = chain
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere.so").write_bytes(b"x")
    (tmp_path / "run" / "link.so").symlink_to(tmp_path / "elsewhere.so")
    (tmp_path / "run" / "good.so").write_bytes(b"x")
    offered = {
        "a" * 40: str(tmp_path / "elsewhere.so"),
        "b" * 40: str(tmp_path / "run" / "link.so"),
        "../../" + "c" * 34: str(tmp_path / "run" / "good.so"),
        "d" * 40: str(tmp_path / "run" / "missing.so"),
        "e" * 40: str(tmp_path / "run" / "good.so"),
    }
    made.keep(offered, str(tmp_path / "run"))
    assert os.listdir(made._store) == ["e" * 40 + ".so"]


def test_a_fast_command_that_fails_gives_way_to_the_plain_one(tmp_path: Path, chain: tuple[Toolchain, Builder]) -> None:
    made, builder = chain
    made.begin(plain=False)
    made._standins = str(tmp_path / "not there")
    asked = line(tmp_path / "run")
    builder.run_compile_cmd(asked, str(tmp_path))
    assert builder.lines[-1] == asked and len(builder.lines) == 2
    assert made.cost.fallbacks == 1 and (tmp_path / "run" / "kernel.so").exists()


def test_an_error_of_the_kernel_is_that_of_the_plain_command(tmp_path: Path, chain: tuple[Toolchain, Builder]) -> None:
    made, builder = chain
    made.begin(plain=False)
    with pytest.raises(subprocess.CalledProcessError):
        builder.run_compile_cmd(line(tmp_path / "run", "no c++\n"), str(tmp_path))
    assert not made.built


def test_headers_and_objects_are_left_alone() -> None:
    assert _Call.parse("g++ -x c++-header a.h -o a.h.gch") is None
    assert _Call.parse("g++ a.cpp -c -o a.o") is None
    assert _Call.parse("g++ a.cpp b.cpp -shared -o a.so") is None


def test_kernels_that_differ_in_numbers_alone_are_of_one_form(tmp_path: Path) -> None:
    loop = "for (int64_t x0 = 0L; x0 < {}L; x0 += 16L) out_ptr0[x0] = {};"
    texts = [loop.format(24, "1.5e-3"), loop.format(1030, "2.0"), loop.replace("+=", "-=").format(24, "1.5e-3")]
    calls = [_Call.parse(line(tmp_path / str(number), text)) for number, text in enumerate(texts)]
    one, other, third = (call.form() for call in calls if call is not None)
    assert one == other != third


def test_standins_name_the_same_libraries() -> None:
    words = _linked_with(["g++", "a.cpp", "-shared", "-o", "a.so", "-ltorch", "-ltorch_cpu", "-lgomp"], "/s", "")
    assert words[:6] == ["g++", "a.cpp", "-shared", "-o", "a.so", "-lgomp"]
    assert "-ltorch_cpu" in words[words.index("-L/s") :]


def test_clang_gets_no_openmp_and_no_flags_of_gcc(tmp_path: Path, chain: tuple[Toolchain, Builder]) -> None:
    made, _builder = chain
    made._clang, made._headers = "clang++", str(tmp_path)
    made._instantiated = lambda header, flags: "whole.pch"  # type: ignore[method-assign]
    folder = tmp_path / "run"
    asked = line(folder, extra="-include some.h -fno-tree-loop-vectorize -O3 -lgomp")
    call = _Call.parse(asked)
    assert call is not None
    words = made._with_clang(call)
    assert words[0] == "clang++" and "-O3" in words and "-lgomp" not in words and "-shared" not in words
    assert "-fno-tree-loop-vectorize" not in words and "some.h" not in words and "whole.pch" in words
    parallel = _Call.parse(line(folder, SOURCE + _OPENMP.decode() + " parallel\n", extra="-include some.h"))
    assert parallel is not None and made._with_clang(parallel) == []


@pytest.mark.skipif(not _find_clang("/tmp"), reason="no clang of version 16 or newer on this machine")
def test_clang_builds_what_loads_and_names_the_same_libraries(tmp_path: Path) -> None:
    made, builder = Toolchain(str(tmp_path / "shared")), Builder()
    os.makedirs(made._store)
    made._clang, made._headers = _find_clang("/tmp"), str(tmp_path)
    made._standins = str(tmp_path / "standins")
    assert _make_standins(made._standins, "g++")
    made._wrap(builder)
    (tmp_path / "some.h").write_text("template <class T> T twice(T x) { return x + x; }\n")
    text = 'extern "C" double answer() { return twice(21.0); }\n'
    asked = line(tmp_path / "run", text, extra=f"-include {tmp_path}/some.h -O3 -g1 -ltorch -ltorch_cpu -lgomp")
    for _ in range(2):  # the second time with the link command known
        made.begin(plain=False)
        builder.run_compile_cmd(asked, str(tmp_path))
        assert not builder.lines and made.cost.clang == 1 and made.cost.fallbacks == 0
        assert 0 < made.cost.clang_cpu <= made.cost.cpu
    assert sorted(os.listdir(tmp_path / "run")) == ["kernel.cpp", "kernel.so"]
    needed = subprocess.run(["readelf", "-d", str(tmp_path / "run" / "kernel.so")], capture_output=True, text=True)
    assert "libtorch_cpu.so" in needed.stdout and "libomp" not in needed.stdout
    assert len(list(tmp_path.glob("*.link"))) == len(list(tmp_path.glob("*.pch"))) == 1
    where = {"LD_LIBRARY_PATH": made._standins}
    loads = "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).answer; f.restype = ctypes.c_double; sys.exit(f() != 42)"
    subprocess.run([sys.executable, "-c", loads, str(tmp_path / "run" / "kernel.so")], check=True, env=where)
