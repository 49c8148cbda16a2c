"""Do mutants run? Eager execution of mutants of twelve small programs; as a script it prints shares a mutation."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import random
import sys
import types
import warnings
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mutation_base import PROGRAMS

from fuzzer.engines.mutate import MUTATIONS, MutationContext, mutate
from fuzzer.engines.mutate.modes import INDUCTOR_OPTIONS
from fuzzer.engines.view import ProgramView
from fuzzer.knowledge.operators import Operators
from fuzzer.program import Program

OPERATORS = Operators.load_extract()


def run_eagerly(program: Program) -> str:
    """ "" when ``fn`` accepts both sets of inputs (and gradients exist where the mode asks), else the error."""
    torch = pytest.importorskip("torch")
    module = types.ModuleType(f"mutant_{program.id}")
    sys.modules[module.__name__] = module  # torch.cond compiles even in eager mode, and looks the module up by name
    scope = module.__dict__
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            exec(compile(program.text, "<mutant>", "exec"), scope)
            with torch.no_grad() if program.meta.get("no_grad") else contextlib.nullcontext():
                out = scope["fn"](*scope["build_inputs"]())
                if "build_inputs2" in scope:
                    scope["fn"](*scope["build_inputs2"]())
            if program.mode == "backward":
                leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(out) if hasattr(leaf, "grad_fn")]
                total = [leaf.sum() for leaf in leaves if leaf.requires_grad]
                sum(total[1:], total[0]).abs().backward()
    except Exception as error:  # a mutant may raise anything; the share of those that do is what is measured
        return f"{type(error).__name__}: {error}"
    return ""


def mutants(name: str, seeds: range):
    """(base, mutant) for every base program and seed; None where the mutation does not apply."""
    bases = list(PROGRAMS.items())
    for place, (base, program) in enumerate(bases):
        for seed in seeds:
            donor = bases[(place + 1 + seed) % len(bases)][1]
            ctx = MutationContext(random.Random(f"{base} {seed}"), donor=ProgramView.of(donor), operators=OPERATORS)
            yield base, mutate(program, name, ctx)


def shares(seeds: range) -> tuple[Counter[str], Counter[str], Counter[str], list[str]]:
    """(tried, applicable, valid) per mutation, and what went wrong."""
    tried: Counter[str] = Counter()
    applicable: Counter[str] = Counter()
    valid: Counter[str] = Counter()
    errors = []
    for name in MUTATIONS:
        for base, mutant in mutants(name, seeds):
            tried[name] += 1
            if mutant is not None:
                applicable[name] += 1
                error = run_eagerly(mutant)
                valid[name] += not error
                if error:
                    errors.append(f"{name} on {base}: {error.splitlines()[0][:110]}")
    return tried, applicable, valid, errors


@pytest.mark.torch
def test_most_mutants_run() -> None:
    assert all(run_eagerly(program) == "" for program in PROGRAMS.values())
    _, applicable, valid, errors = shares(range(3))
    assert set(applicable) == set(MUTATIONS), "every mutation applies to something"
    share = sum(valid.values()) / sum(applicable.values())
    assert share >= 0.7, "\n".join(errors)
    # No mutation is a mere waste of runs.
    assert all(valid[name] >= 0.35 * applicable[name] for name in MUTATIONS), "\n".join(errors)


def outputs(program: Program, view: ProgramView) -> list:
    """Leaves of the results and of the inputs after the call."""
    torch = pytest.importorskip("torch")
    scope: dict = {}
    exec(dataclasses.replace(view, meta=program.meta).to_text(), scope)
    inputs = scope["build_inputs"]()
    return torch.utils._pytree.tree_leaves((scope["fn"](*inputs), inputs))


@pytest.mark.torch
@pytest.mark.parametrize("base", sorted(PROGRAMS))
def test_rewritings_that_must_not_change_a_result(base: str) -> None:
    """Normal form, dead statements dropped, independent statements exchanged, a statement outlined."""
    torch = pytest.importorskip("torch")
    program = PROGRAMS[base]
    expected = outputs(program, ProgramView.of(program))
    view = ProgramView.of(program).normalise()
    body = tuple(statement for statement, alive in zip(view.body, view.live()) if alive)
    variants = [view, dataclasses.replace(view, body=body)]
    for name in ("reorder", "wrap_function", "wrap_module", "insert_dead", "inductor_config"):
        variants += [c for c in (MUTATIONS[name].apply(view, MutationContext(random.Random(s))) for s in range(4)) if c]
    for variant in variants:
        for want, have in zip(expected, outputs(program, variant), strict=True):
            assert torch.equal(want, have), variant.to_text()


@pytest.mark.torch
def test_compiler_options_are_there_and_unlike_the_default() -> None:
    config = pytest.importorskip("torch._inductor.config")
    defaults = config.get_config_copy()
    for key, values in INDUCTOR_OPTIONS.items():
        assert key in defaults, key
        assert any(value != defaults[key] for value in values), key
        for value in values:
            with config.patch({key: value}):
                assert config.get_config_copy()[key] == value


if __name__ == "__main__":
    tried, applicable, valid, errors = shares(range(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
    for name in MUTATIONS:
        share = valid[name] / max(1, applicable[name])
        print(f"{name:20} tried {tried[name]:4} applicable {applicable[name]:4} valid {share:6.1%}")
    ran, made = sum(valid.values()), sum(applicable.values())
    print(f"all: {ran} of {made}, {ran / made:.1%}")
    if "-v" in sys.argv:
        print("\n".join(errors))
