"""NNSmith under the same instruments as Eddy: runs in NNSmith's interpreter, counts what it does and what it reaches.

    PYTHON_WITH_NNSMITH benchmarks/peer_nnsmith.py --seconds 1200 --root FOLDER

The interpreter needs ``nnsmith[torch]==0.1.0`` of PyPI and the torch under test; that release knows no torch.compile,
so a backend for it is given here. Prints one line of JSON. Native functions and lines of the compiler count beyond
what importing and one trivial program reach, as a campaign of Eddy counts them. NNSmith tries every operator with every
dtype before its first run and remembers the answer; that time is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=1200)
    parser.add_argument("--root", required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent.parent))
    os.makedirs(args.root, exist_ok=True)

    import torch
    import torch._dynamo
    import torch._inductor.compile_fx

    from harness.coverage.native import NativeCoverage
    from harness.coverage.python_lines import PythonCoverage

    torch.set_num_threads(1)

    def trivial(a: Any, b: Any) -> Any:
        return (torch.sin(a) + b).sum(dim=1)

    torch.compile(trivial)(torch.ones(5, 7, requires_grad=True), torch.ones(5, 7)).sum().backward()
    domains = {"native": NativeCoverage(args.root), "python": PythonCoverage(scratch=args.root)}
    for domain in domains.values():
        domain.start()
    with domains["python"].measuring():
        torch._dynamo.reset()
        torch.compile(trivial)(torch.ones(5, 8, requires_grad=True), torch.ones(5, 8)).sum().backward()
    for domain in domains.values():
        domain.harvest()
        domain.reset()

    import nnsmith.config
    from hydra import compose, initialize_config_dir
    from multipledispatch import dispatch
    from nnsmith.backends.factory import BackendFactory
    from nnsmith.cli.fuzz import FuzzingLoop
    from nnsmith.materialize.torch import TorchModel

    class Compiled(BackendFactory):  # type: ignore[misc]
        """torch.compile as NNSmith sees a backend: arrays in, arrays out."""

        system_name = "compile"

        @dispatch(TorchModel)
        def make_backend(self, model: Any) -> Any:
            net = model.torch_model.eval()
            with torch.no_grad():
                compiled = torch.compile(net)

            def run(inputs: dict[str, Any]) -> dict[str, Any]:
                torch._dynamo.reset()
                with torch.no_grad():
                    outputs = compiled(*(torch.from_numpy(value) for value in inputs.values()))
                return {
                    name: value.detach().resolve_conj().numpy() for name, value in zip(net.output_like.keys(), outputs)
                }

            return run

    BackendFactory.init = staticmethod(lambda name, target="cpu", optmax=True, **options: Compiled(target, optmax))

    class Loop(FuzzingLoop):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            self.operators: dict[str, int] = {}
            super().__init__(config)

        def make_testcase(self, seed: int) -> Any:
            case = super().make_testcase(seed)
            for node in case.model.torch_model.modules():
                for instruction in getattr(getattr(node, "ir", None), "insts", ()):
                    name = instruction.iexpr.op.name()
                    self.operators[name] = self.operators.get(name, 0) + 1
            return case

    with initialize_config_dir(version_base=None, config_dir=str(Path(nnsmith.config.__file__).parent)):
        config = compose(
            "main",
            overrides=[
                f"fuzz.time={args.seconds}s", f"fuzz.root={args.root}/bugs", f"fuzz.seed={args.seed}",
                "model.type=torch", "backend.type=compile", "mgen.max_nodes=5",
            ],
        )  # fmt: skip
    loop = Loop(config)
    started, cpu = time.monotonic(), time.process_time()
    with domains["python"].measuring():
        loop.run()
    seconds = time.monotonic() - started
    status = loop.status
    told = {
        "programs": status.n_testcases,
        "programs_per_hour": round(3600 * status.n_testcases / seconds),
        "not_made": status.n_fail_make_test,
        "reports": status.n_bugs,
        "operators": len([name for name in loop.operators if name not in ("Input", "Constant", "Placeholder")]),
        "seconds": round(seconds),
        "cpu": round(time.process_time() - cpu),
        **{name: sum(map(len, domain.harvest().values())) for name, domain in domains.items()},
    }
    print(json.dumps(told), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
