"""Options off, plainer modes, no second call, functions in place of modules."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import Block, ProgramView
from fuzzer.reduce.tidy import tidied, without_unread_lines, without_unused_definitions

#: Keys of META that change how a program runs, and none of which a plain program has. What decides the judgement
#: (tolerances, exactness, promised strides, time limits) stays.
OPTIONS = (
    "inductor_config", "dynamo_config", "functorch_config", "compile", "compile_kwargs", "random", "no_grad",
    "mark_dynamic",
)  # fmt: skip

#: Mode → plainer ones.
_PLAINER = {
    "backward": ("forward",),
    "dynamic": ("forward",),
    "train": ("eval", "forward"),
    "eval": ("forward",),
    "jit_trace": ("forward",),
}

#: Modules without parameters, and the function each is.
FUNCTIONS = {
    **{name: name.lower() for name in ("ReLU", "ReLU6", "SiLU", "GELU", "Mish", "CELU", "SELU", "ELU", "Softplus",
                                       "Softsign", "Hardtanh", "Hardsigmoid", "Hardswish", "Tanhshrink", "Softmin",
                                       "Softmax", "Unfold", "Fold", "Threshold", "Sigmoid", "Tanh", "GLU")},
    "LeakyReLU": "leaky_relu", "LogSigmoid": "logsigmoid", "LogSoftmax": "log_softmax", "PixelShuffle": "pixel_shuffle",
    "PixelUnshuffle": "pixel_unshuffle", "Upsample": "interpolate", "CosineSimilarity": "cosine_similarity",
    "AvgPool1d": "avg_pool1d", "AvgPool2d": "avg_pool2d", "AvgPool3d": "avg_pool3d", "MaxPool1d": "max_pool1d",
    "MaxPool2d": "max_pool2d", "MaxPool3d": "max_pool3d", "AdaptiveAvgPool1d": "adaptive_avg_pool1d",
    "AdaptiveAvgPool2d": "adaptive_avg_pool2d", "AdaptiveMaxPool1d": "adaptive_max_pool1d",
    "AdaptiveMaxPool2d": "adaptive_max_pool2d",
}  # fmt: skip
_MODULE = re.compile(r"^(torch\.nn|nn)\.(\w+)$")


def without_options(view: ProgramView) -> Iterator[ProgramView]:
    """All options off at once, then one at a time, then one entry of each; no second call; plainer modes."""
    present = [key for key in OPTIONS if key in view.meta]
    if len(present) > 1:
        yield _without_keys(view, present)
    for key in present:
        yield _without_keys(view, [key])
    for key in present:
        inner = view.meta[key]
        if isinstance(inner, dict) and len(inner) > 1:
            for name in inner:
                yield view.with_meta(**{key: {other: value for other, value in inner.items() if other != name}})
    if view.build2 is not None:
        yield dataclasses.replace(view, build2=None)
    for mode in _PLAINER.get(view.mode, ()):
        yield with_mode(view, mode)
    if view.decorators:
        yield dataclasses.replace(view, decorators=())


def with_mode(view: ProgramView, mode: str) -> ProgramView:
    """The program in another mode. Without gradients to compare, none are asked of the inputs."""
    changed = view.with_meta(mode=mode)
    return changed.with_blocks(_without_gradients) if view.mode == "backward" else changed


def _without_gradients(block: Block) -> Block:
    def plain(text: str) -> str:
        text = re.sub(r"\.requires_grad_\((True)?\)", "", text)
        return re.sub(r",\s*requires_grad=True", "", text)

    body = tuple(Statement.of(plain(statement.text)) for statement in block.body)
    return Block(body, block.returns.map(plain))


def _without_keys(view: ProgramView, keys: list[str]) -> ProgramView:
    meta: dict[str, Any] = {name: value for name, value in view.meta.items() if name not in keys}
    return dataclasses.replace(view, meta=meta)


def without_unread_lines_of_builders(view: ProgramView) -> Iterator[ProgramView]:
    """Lines of the builders that nothing reads: they moved the random numbers of those after them."""
    shorter = without_unused_definitions(view.with_blocks(without_unread_lines))
    if shorter != view:
        yield shorter


def without_seed(view: ProgramView) -> Iterator[ProgramView]:
    """No ``manual_seed`` where nothing is drawn."""

    def unseeded(block: Block) -> Block:
        drawn = any(statement.random and "manual_seed" not in statement.text for statement in block.body)
        body = tuple(s for s in block.body if drawn or not s.text.startswith("torch.manual_seed("))
        return Block(body, block.returns)

    shorter = view.with_blocks(unseeded)
    if shorter != view:
        yield shorter


def smaller_modules(view: ProgramView) -> Iterator[ProgramView]:
    """A module without parameters as the function that it is; one element in place of a Sequential."""
    places = {name: number for number, name in enumerate(view.inputs)}
    for index, statement in enumerate(view.build):
        call = statement.node.value if isinstance(statement.node, ast.Assign) else None
        name = statement.targets[0] if statement.targets else ""
        if not isinstance(call, ast.Call) or name not in places or len(view.params) != len(places):
            continue
        found = _MODULE.match(ast.unparse(call.func))
        if not found:
            continue
        if found[2] == "Sequential":
            for element in call.args:
                build = (*view.build[:index], statement.edit(call, statement.source(element)), *view.build[index + 1 :])
                yield dataclasses.replace(view, build=build)
        elif found[2] in FUNCTIONS:
            changed = _as_function(view, view.params[places[name]], FUNCTIONS[found[2]], statement, call)
            if changed is not None:
                yield tidied(changed)


def _as_function(view: ProgramView, param: str, function: str, made: Statement, call: ast.Call) -> ProgramView | None:
    """Calls of the module become calls of the function, with the module's arguments behind their own."""
    extra = [made.source(argument) for argument in call.args]
    extra += [f"{keyword.arg}={made.source(keyword.value)}" for keyword in call.keywords if keyword.arg != "inplace"]
    body = []
    for statement in view.body:
        value = statement.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == param:
            own = [statement.source(argument) for argument in value.args]
            statement = statement.edit(value, f"torch.nn.functional.{function}({', '.join([*own, *extra])})")
        elif param in statement.reads:
            return None
        body.append(statement)
    return None if param in view.returns.reads else dataclasses.replace(view, body=tuple(body))
