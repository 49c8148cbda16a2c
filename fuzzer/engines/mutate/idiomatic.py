"""The mutation that writes an idiom of a wanted feature into a program."""

from __future__ import annotations

import dataclasses
from typing import Any

from fuzzer.engines.idioms import Idiom, Piece, default_idioms, write
from fuzzer.engines.mutate.base import FunctionMutation, MutationContext, Site, add_result, sites
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import Block, ProgramView


def insert_idiom(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A few statements that bring about a feature that is asked for, on some tensor; their result is returned too."""
    idioms = default_idioms()
    wanted = [feature for feature in ctx.features if feature in idioms] or [ctx.rng.choice(_AIMS)]
    options = [idiom for idiom in idioms.of(ctx.rng.choice(wanted)) if _possible(idiom, view)]
    if not options:
        return None
    idiom = ctx.rng.choice(options)
    changed = dataclasses.replace(view, meta=_merged(view.meta, idiom.meta))
    if not idiom.code:
        return changed if changed != view else None
    made = set(view.locals()) - set(view.params)
    fitting = [
        site
        for site in sites(view)
        if site.guess.dtype and site.guess.shape is not None
        if idiom.fits(site.guess.dtype, site.guess.shape, site.name in made)
    ]
    return _written(changed, idiom, ctx.rng.choice(fitting), ctx) if fitting else None


def _possible(idiom: Idiom, view: ProgramView) -> bool:
    """Inputs and helpers need a plain signature and free names; options must not contradict the mode."""
    if idiom.returns == "dict" or idiom.needs_twin or (idiom.inputs and (view.signature or not view.inputs)):
        return False
    taken = view.used_names()
    if any(line.split()[1].split("(")[0].rstrip(":") in taken for line in _definitions(idiom.helper)):
        return False
    graded = view.mode in ("backward", "train")
    return not (graded and (idiom.meta.get("no_grad") or "inference_mode" in idiom.code))


def _definitions(helper: str) -> list[str]:
    return [line for line in helper.splitlines() if line.startswith(("class ", "def "))]


def _written(view: ProgramView, idiom: Idiom, site: Site, ctx: MutationContext) -> ProgramView:
    assert site.guess.dtype is not None and site.guess.shape is not None
    names = view.fresh_names()
    piece = write(idiom, site.name, site.guess.dtype, site.guess.shape, ctx.rng, lambda: next(names))
    changed = view.insert(site.index, *_statements(piece))
    if piece.helper:
        changed = dataclasses.replace(changed, prelude=_with_helper(changed.prelude, piece.helper))
        # Read back once, so that blank lines stand where the view's own rendering puts them.
        changed = dataclasses.replace(changed, prelude=ProgramView.of(changed.to_program()).prelude)
    if piece.inputs:
        changed = _with_inputs(changed, piece)
    for name in piece.results:
        changed = add_result(changed, name)
    return changed


def _statements(piece: Piece) -> list[str]:
    """The piece's lines as whole statements: what is indented belongs to the line above."""
    found: list[str] = []
    for line in piece.lines:
        if line.startswith((" ", "else", "except", "elif", "finally")) or (not line and found):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return [text.rstrip("\n") for text in found]


def _with_helper(prelude: str, helper: str) -> str:
    lines = helper.splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from ")) and line not in prelude.splitlines()]
    rest = "\n".join(line for line in lines if not line.startswith(("import ", "from "))).strip("\n")
    head = "\n".join([*imports, prelude])
    return f"{head}\n\n\n{rest}" if rest else head


def _with_inputs(view: ProgramView, piece: Piece) -> ProgramView:
    """New inputs at the end, the same in both builders."""
    taken = set(view.used_names())
    named = [(name if name not in taken else f"{name}0", name, text) for name, text in piece.inputs]

    def extend(block: Block) -> Block:
        new = tuple(Statement.of(f"{built} = {text}") for built, _, text in named)
        returns = dataclasses.replace(block.returns, items=(*block.returns.items, *(built for built, _, _ in named)))
        return Block((*block.body, *new), returns)

    changed = view.with_blocks(extend)
    return dataclasses.replace(changed, params=(*view.params, *(name for _, name, _ in named)))


def _merged(meta: dict[str, Any], more: Any) -> dict[str, Any]:
    merged = dict(meta)
    for key, value in more.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


_AIMS = tuple(sorted(default_idioms().features - {"python=dict_result"}))

MUTATIONS = (
    FunctionMutation("insert_idiom", "a few statements that a wanted feature consists of", _AIMS, insert_idiom),
)
