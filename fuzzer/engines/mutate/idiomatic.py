"""Mutations that write a few statements out of the knowledge base into a program: idioms, bug patterns, subgraphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fuzzer.engines.idioms import Idiom, Knowledge, Piece, default_idioms, idioms_of, write
from fuzzer.engines.mutate.base import FunctionMutation, MutationContext, Site, add_result, sites
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import Block, ProgramView
from fuzzer.features.detect import default_space
from fuzzer.knowledge.patterns import Entry, Pattern
from fuzzer.knowledge.retrieval import Retriever, called

_RETRIEVED = 6  # one of them is taken: the best alone would be the same every time
#: Share of patterns taken whatever the program is like: what nobody thought to ask for.
_AT_RANDOM = 0.3


def insert_idiom(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A few statements that bring about a feature that is asked for, on some tensor; their result is returned too."""
    idioms = idioms_of(ctx.knowledge)
    wanted = [feature for feature in ctx.features if feature in idioms] or [ctx.rng.choice(_AIMS)]
    options = [idiom for idiom in idioms.of(ctx.rng.choice(wanted)) if _possible(idiom, view)]
    if not options:
        return None
    return _inserted(view, ctx.rng.choice(options), ctx)


def apply_pattern(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """What a bug pattern does, on some tensor. Retrieval prefers patterns that share something with the program or
    with what is asked of it. Patterns that eager must refuse have their place here and nowhere else, since nothing has
    to run before them; they look for checks that compiled code lost."""
    operators = {f"op={name.rpartition('.')[2]}" for name in called(view.to_program())}
    vector = frozenset({*ctx.features, *operators})
    retriever = _retriever(ctx.knowledge)
    odds = ctx.schedule.entry_odds() if ctx.schedule is not None else None
    found = retriever.retrieve(vector, odds, whole=False, k=_RETRIEVED)
    patterns: Sequence[Pattern] = retriever.patterns
    if found and not ctx.chance(_AT_RANDOM):
        patterns = [match.pattern for match in found]
    return _entry_inserted(view, patterns, ctx)


def insert_subgraph(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A subgraph of the kind that compilers fuse or match as a whole, on some tensor that fits it."""
    entries = [entry for entry in ctx.knowledge.entries() if entry.kind == "subgraph"]
    wanted = [entry for entry in entries if set(entry.brings) & set(ctx.features)]
    return _entry_inserted(view, wanted or entries, ctx)


def _entry_inserted(view: ProgramView, entries: Sequence[Entry], ctx: MutationContext) -> ProgramView | None:
    """The statements of one of the entries; META remembers its id, so that what came of it can be told."""
    if ctx.schedule is not None:
        by_id = {entry.id: entry for entry in entries}
        shuffled = [by_id[name] for name in ctx.schedule.rank_entries(list(by_id), ctx.rng)]
    else:
        shuffled = ctx.rng.sample(entries, len(entries))
    entry = next((entry for entry in shuffled if _possible(entry.template, view)), None)
    if entry is None:
        return None
    told = [*(name for name in view.meta.get("knowledge", ()) if name != entry.id), entry.id]
    changed = _inserted(view, entry.template, ctx)
    return None if changed is None else dataclasses.replace(changed, meta={**changed.meta, "knowledge": told})


@lru_cache(maxsize=8)
def _retriever(knowledge: Knowledge) -> Retriever:
    patterns = [entry for entry in knowledge.entries() if isinstance(entry, Pattern)]
    return Retriever(patterns, default_space().compatible)


def _inserted(view: ProgramView, idiom: Idiom, ctx: MutationContext) -> ProgramView | None:
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
    if not fitting:
        return _adapted(changed, idiom, ctx)
    return _written(changed, idiom, ctx.rng.choice(fitting), ctx)


def _adapted(view: ProgramView, idiom: Idiom, ctx: MutationContext) -> ProgramView | None:
    """On a view or cast of a tensor, where none fits as it is."""
    found = []
    for site in sites(view):
        if site.guess.dtype and site.guess.shape is not None:
            adapter = idiom.adapter(site.guess.dtype, site.guess.shape)
            if adapter is not None and adapter[0] != "{}":
                found.append((site, adapter))
    if not found:
        return None
    site, (text, dtype, shape) = ctx.rng.choice(found)
    name = next(iter(view.fresh_names()))
    changed = view.insert(site.index, f"{name} = {text.format(site.name)}")
    guess = dataclasses.replace(site.guess, dtype=dtype, shape=shape)
    return _written(changed, idiom, Site(site.index + 1, name, guess), ctx)


def _possible(idiom: Idiom, view: ProgramView) -> bool:
    """Inputs and helpers need a plain signature and free names; options must not contradict the mode."""
    if idiom.returns == "dict" or idiom.needs_twin or (idiom.inputs and (view.signature or not view.inputs)):
        return False
    taken = view.used_names()
    if any(line.split()[1].split("(")[0].rstrip(":") in taken for line in _definitions(idiom.helper)):
        return False
    graded = view.mode in ("backward", "train")
    if idiom.meta.get("mode") in ("backward", "train") and not graded:  # inputs are made without gradients
        return False
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
    FunctionMutation("apply_pattern", "what a known bug pattern does, on some tensor", (), apply_pattern),
    FunctionMutation("insert_subgraph", "a subgraph that compilers treat as a whole", (), insert_subgraph),
)
