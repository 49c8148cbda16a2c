"""What any fuzzer of torch.compile must pay: one warm process that compiles and runs programs, and nothing else.

Runs in the target. Reads paths of programs, a line each, from standard input; answers each with one line of JSON:
wall and processor seconds (the C++ compiler's included) of building the inputs, compiling and running.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import types
from typing import Any


def cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run(text: str, number: int) -> None:
    import torch

    module = types.ModuleType(f"program{number}")
    sys.modules[module.__name__] = module
    exec(compile(text, module.__name__, "exec"), module.__dict__)
    meta: dict[str, Any] = module.__dict__.get("META", {})
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = module.__dict__["build_inputs"]()
    arguments = dict(meta.get("compile", {}))
    if meta.get("mode") == "dynamic":
        arguments.setdefault("dynamic", True)
    with (
        torch._inductor.config.patch(meta.get("inductor_config", {})),
        torch._dynamo.config.patch(meta.get("dynamo_config", {})),
    ):
        compiled = torch.compile(module.__dict__["fn"], **arguments)
        with torch.set_grad_enabled(not meta.get("no_grad")):
            result = compiled(*inputs)
        if meta.get("mode") in ("backward", "train"):
            leaves, _ = torch.utils._pytree.tree_flatten(result)
            roots = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
            if roots:
                torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])


def main() -> None:
    import torch
    import torch._dynamo
    import torch._functorch.config
    import torch._inductor.config

    torch.set_num_threads(1)
    torch._inductor.config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False
    torch._inductor.config.cpp.threads = 2  # as the harness sets it
    torch.compile(lambda x: x.sin() + 1)(torch.randn(5, 7))
    print(json.dumps({"ready": torch.__version__}), flush=True)
    for number, line in enumerate(sys.stdin):
        with open(line.strip()) as file:
            text = file.read()
        started, before = time.perf_counter(), cpu_seconds()
        try:
            run(text, number)
            error = ""
        except Exception as failure:
            error = f"{type(failure).__name__}: {str(failure)[:200]}"
        answer = {"seconds": time.perf_counter() - started, "cpu": cpu_seconds() - before, "error": error}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
