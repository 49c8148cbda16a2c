"""Write an extract of operators: the compact file that is read back, and an index of it for people."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgpack

from fuzzer.exits import UserError
from fuzzer.knowledge.operators import FORMAT, Operators


def write_extract(records: Iterable[Mapping[str, Any]], path: Path, fingerprint: Mapping[str, str]) -> Operators:
    """Write ``path`` (zlib-compressed msgpack) and next to it ``<path>.txt``, a line an operator.

    Each file replaces its predecessor in one step. Returns what ``Operators.load_extract`` will read.

    Raises:
        UserError: there are no records, one is malformed, or the folder cannot be written to.
    """
    kept = list(records)
    if not kept:
        raise UserError(f"{path}: no operator to write; was the derivation stopped?")
    operators = Operators.from_records(kept, fingerprint)
    content = {"format": FORMAT, "fingerprint": dict(fingerprint), "operators": kept}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, zlib.compress(msgpack.packb(content, use_bin_type=True), 9))
        _replace(path.with_name(path.name + ".txt"), index(operators).encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
    return operators


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(content)
    os.replace(fresh, path)


def index(operators: Operators) -> str:
    """A readable listing: what it was derived from, operators by family, one line each."""
    lines = [f"# {name}: {value}" for name, value in operators.fingerprint.items()]
    lowering = Counter(operator.lowering for operator in operators)
    calls = sum(len(operator.calls) for operator in operators)
    shares = ", ".join(f"{count} {state}" for state, count in lowering.most_common())
    lines.append(f"# {len(operators)} operators, {calls} calls; in Inductor: {shares}")
    for family in operators.families.by_id:
        members = operators.by_family.get(family, [])
        if members:
            lines += ["", f"## {family} ({len(members)})"]
        for operator in sorted(members, key=lambda operator: operator.key):
            marks = [word for word in ("autograd", "random") if getattr(operator, word)]
            forms = ",".join(dict.fromkeys(form.kind for form in operator.forms))
            aten = ",".join(operator.aten[:3]) + (",…" if len(operator.aten) > 3 else "")
            facts = [forms, operator.lowering, f"{len(operator.calls)} calls", f"{len(operator.dtypes)} dtypes", *marks]
            lines.append(f"{operator.key:44} {' '.join(facts)}  {aten}".rstrip())
    return "\n".join(lines) + "\n"
