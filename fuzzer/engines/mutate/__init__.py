"""The mutation engine: one operator a child, so that credit is clean.

To add a mutation, write one function ``(view, ctx) -> ProgramView | None`` in the file of its family and put it
into that file's ``MUTATIONS``.
"""

from __future__ import annotations

import ast
import dataclasses

from fuzzer.engines.mutate import idiomatic, inputs, insertions, modes, operators, order, splice, wraps
from fuzzer.engines.mutate.base import MAX_LINES, Mutation, MutationContext, undefined
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.exits import UserError
from fuzzer.program import Program, ProgramError

#: Every mutation by name.
MUTATIONS: dict[str, Mutation] = {
    mutation.name: mutation
    for family in (operators, inputs, insertions, order, splice, modes, wraps, idiomatic)
    for mutation in family.MUTATIONS
}

#: META keys that tell what the parent was or ought to do: no longer true of a child.
_OF_THE_PARENT = frozenset(
    {
        *(
            "id",
            "issue",
            "title",
            "kind",
            "ops",
            "dtypes",
            "backend_stage",
            "features",
            "parents",
            "engine",
            "seed",
        ),
        *("expect_eager", "expect_zero", "refused", "same_exc", "exact", "only"),
    }
)


def mutate(program: Program, name: str, ctx: MutationContext) -> Program | None:
    """A child of ``program``, or None where the mutation does not apply.

    The child's META names its parents (program first, then the donor) and ``mutate:<name>`` as engine.

    Raises:
        UserError: there is no mutation of that name.
    """
    if name not in MUTATIONS:
        raise UserError(f"no mutation {name!r}; there are: {', '.join(sorted(MUTATIONS))}")
    try:
        view = ProgramView.of(program).normalise()
    except ViewError:
        return None
    meta = {key: value for key, value in view.meta.items() if key not in _OF_THE_PARENT}
    if ctx.features:
        meta["features"] = list(ctx.features)
    view = dataclasses.replace(view, meta=meta)
    changed = MUTATIONS[name].apply(view, ctx)
    if changed is None or changed == view or undefined(changed):
        return None
    changed = dataclasses.replace(changed, prelude=_without_unused_imports(changed))
    parents = [program.id]
    if name == "splice" and ctx.donor is not None:
        parents.append(ctx.donor.origin or ctx.donor.to_program().id)
    try:
        child = changed.to_program(parents=parents, engine=f"mutate:{name}")
    except ProgramError:
        return None
    return child if child.text.count("\n") <= MAX_LINES else None


def _without_unused_imports(view: ProgramView) -> str:
    """The prelude without one-line imports that nothing reads; ``torch`` always stays."""
    body = dataclasses.replace(view, prelude="").to_text()
    text = "\n".join(line for line in (body + view.prelude).splitlines() if not line.startswith("import "))
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    kept = []
    for line in view.prelude.splitlines():
        if line.startswith("import ") and "," not in line:
            bound = line.split(" as ")[-1] if " as " in line else line.removeprefix("import ").split(".")[0]
            if bound.strip() not in used and bound.strip() != "torch":
                continue
        kept.append(line)
    return "\n".join(kept)


__all__ = ["MUTATIONS", "Mutation", "MutationContext", "mutate"]
