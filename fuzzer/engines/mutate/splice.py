"""Splicing: a second program's statements after the first's, one of its inputs fed from the first."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from fuzzer.engines.mutate.base import FunctionMutation, MutationContext
from fuzzer.engines.mutate.guess import OTHER, Guess, guess_inputs, guess_names
from fuzzer.engines.view import ProgramView, Returns, fresh

#: Modes whose programs may be joined: the others say something about a whole program.
_JOINABLE = ("forward", "backward", "dynamic")


def splice(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """Donor's inputs and statements appended under fresh names; one of its inputs is connected to a live value."""
    donor = ctx.donor
    if donor is None or not _joinable(view) or not _joinable(donor):
        return None
    prelude = _merge_preludes(view.prelude, donor.prelude)
    if prelude is None:
        return None
    names = fresh(view.used_names() | donor.used_names())
    donor = _renamed(donor.normalise(), names)
    connected = _connect(view, donor, ctx)
    if connected is None:
        return None
    donor, link = connected
    items = tuple(dict.fromkeys((*view.returns.items, *donor.returns.items)))
    build = tuple(s for s in donor.build if "manual_seed" not in s.text or not view.build)
    patches = {key: {**donor.meta.get(key, {}), **view.meta.get(key, {})} for key in _PATCHES}
    meta = {**view.meta, **{key: value for key, value in patches.items() if value}}
    if donor.meta.get("random"):
        meta["random"] = True
    return dataclasses.replace(
        view,
        prelude=prelude,
        meta=meta,
        build=view.build + build,
        build_returns=Returns("tuple", view.build_returns.items + donor.build_returns.items),
        build2=None,
        params=view.params + donor.params,
        body=view.body + link + donor.body,
        returns=Returns("tuple", items),
    )


_PATCHES = ("inductor_config", "dynamo_config", "functorch_config")


def _joinable(view: ProgramView) -> bool:
    return (
        view.signature is None
        and not view.decorators
        and view.mode in _JOINABLE
        and view.build_returns.kind == "tuple"
        and len(view.build_returns.items) == len(view.params)
        and view.returns.kind in ("single", "tuple", "list", "dict")
        and not view.tail
        and all(s.simple or not any(isinstance(n, ast.Return) for n in ast.walk(s.node)) for s in view.body)
    )


def _renamed(donor: ProgramView, names: Iterator[str]) -> ProgramView:
    mapping = {name: next(names) for name in donor.bound_before(len(donor.body))}
    inputs = dict(zip(donor.inputs, (mapping[param] for param in donor.params)))
    local = dict.fromkeys(target for s in donor.build for target in s.targets)
    return donor.rename(mapping).rename_build({name: inputs.get(name) or next(names) for name in local})


def _merge_preludes(first: str, second: str) -> str | None:
    """Both module-level texts; None where they define one name in two ways."""
    have = {ast.unparse(node) for node in ast.parse(first).body}
    names = {_defined(node) for node in ast.parse(first).body}
    extra = []
    for node in ast.parse(second).body:
        text = ast.unparse(node)
        if text in have:
            continue
        if _defined(node) in names:
            return None
        extra.append(text)
    imports = [text for text in extra if text.startswith(("import ", "from ")) and "__future__" not in text]
    others = [text for text in extra if not text.startswith(("import ", "from "))]
    return "\n".join([*imports, first]) + "".join(f"\n\n\n{text}" for text in others)


def _defined(node: ast.stmt) -> str:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return ",".join((alias.asname or alias.name) for alias in node.names)
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ast.unparse(node)


def _connect(view: ProgramView, donor: ProgramView, ctx: MutationContext) -> tuple[ProgramView, tuple] | None:
    """The donor with one input fed by a value of ``view``: in its place where shape and dtype agree, else added."""
    known = guess_names(view)
    wanted = guess_inputs(donor)
    live = [name for name in view.locals() if known.get(name, OTHER).tensor]
    pairs = [(name, param) for name in sorted(live) for param in donor.params if wanted.get(param, OTHER).tensor]
    same = [(name, param) for name, param in pairs if _agree(known[name], wanted[param])]
    if same:
        name, param = ctx.rng.choice(same)
        place = donor.params.index(param)
        items = donor.build_returns.items[:place] + donor.build_returns.items[place + 1 :]
        build = tuple(s for s in donor.build if s.targets != (param,) or _read_elsewhere(donor, param))
        changed = dataclasses.replace(
            donor,
            build=build,
            build_returns=Returns("tuple", items),
            params=donor.params[:place] + donor.params[place + 1 :],
            body=tuple(s.renamed({param: name}) for s in donor.body),
            returns=donor.returns.map(lambda text: name if text == param else text),
        )
        return changed, ()
    numbers = [(n, p) for n, p in pairs if known[n].real and wanted[p].floating]
    if not numbers:
        return None
    name, param = ctx.rng.choice(numbers)
    other = next(fresh(view.used_names() | donor.used_names()))
    link = view.insert(0, f"{other} = {param} + {name}.sum().to({param}.dtype)").body[:1]
    body = tuple(s.renamed({param: other}) for s in donor.body)
    returns = donor.returns.map(lambda text: other if text == param else text)
    return dataclasses.replace(donor, body=body, returns=returns), link


def _agree(have: Guess, want: Guess) -> bool:
    return have.shape is not None and have.shape == want.shape and have.dtype == want.dtype


def _read_elsewhere(donor: ProgramView, param: str) -> bool:
    return any(param in s.reads and s.targets != (param,) for s in donor.build)


MUTATIONS = (
    FunctionMutation(
        "splice",
        "a second program is appended, one of its inputs fed from the first",
        ("topology=deep", "topology=multi_output"),
        splice,
    ),
)
