"""The draft of a bug report about one finding, in the form that PyTorch's issue template asks of fuzzers.

A draft: a person reads, files, and answers for it. Text of programs and compilers is fenced or escaped, so that
nothing in it can change the page.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from fuzzer.finding import Finding, State
from fuzzer.verdict import Kind

_SYMPTOMS = {
    Kind.WRONG_VALUE: "wrong result",
    Kind.WRONG_GRADIENT: "wrong gradient",
    Kind.WRONG_MUTATION: "wrong in-place result",
    Kind.METADATA: "wrong metadata of the result",
    Kind.COMPILE_ERROR: "compile error",
    Kind.MISSING_CHECK: "accepts what eager refuses",
    Kind.EXTRA_CHECK: "refuses at run time what eager accepts",
    Kind.CRASH: "process dies",
    Kind.EAGER_CRASH: "process dies (eager)",
    Kind.EAGER_INTERNAL_ASSERT: "internal assertion fails (eager)",
    Kind.HANG: "never ends",
    Kind.SLOW_COMPILE: "compile time explodes",
}

#: Where every result is right.
_GENERATOR = "random generator left in another state"

#: First failing backend (see ``fuzzer.bisect``) → the word that a title begins with.
_COMPONENTS = {"eager": "eager", "dynamo": "dynamo", "aot_eager": "aot", "decomp": "decomp"}

#: A title's worth of operators, and of table rows and log lines.
_TITLE_OPERATORS = 3
_ROWS = 8

#: Parts of ``Finding.triage["class"]``, in the order in which they are told.
PARTS = ("symptom", "task", "cause")

#: A link that can mean nothing else, in Markdown or in HTML.
PLAIN_LINK = re.compile(r"https://[A-Za-z0-9.-]+(?:/[A-Za-z0-9._/#-]*)?")

#: Facts of the target that mean nothing to others, or tell where a person keeps files.
_PRIVATE = frozenset({"protocol", "executable"})
_LOG_LINES = 40


def report(finding: Finding, repro: str = "") -> str:
    """Markdown of the draft.

    Args:
        repro: the text of ``repro.py`` or ``reduced.py``; without it the program alone is shown.
    """
    sections = [
        f"# {title(finding)}",
        _notice(finding),
        _section("Script", _script(finding, repro)),
        _section("Expected and got", _symptom(finding)),
        _section("Oracle", _oracle(finding)),
        _section("Checks", _checks(finding)),
        _section("Where it fails", _stages(finding)),
        _section("Generated code", _kernel(finding.triage)),
        _section("Similar issues", _similar(finding.triage)),
        _section("Log", _log(finding)),
        _section("Environment", _environment(finding)),
        _section("How to run", _how_to_run(finding)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def title(finding: Finding) -> str:
    """``plain_title`` for Markdown."""
    return escape(plain_title(finding))


def plain_title(finding: Finding) -> str:
    """One line: ``[inductor][cpu] amin, argmin: wrong result``."""
    names = [name.split(".")[-1] for name in finding.operators[:_TITLE_OPERATORS]]
    more = " …" if len(finding.operators) > _TITLE_OPERATORS else ""
    operators = ", ".join(names) + more if names else "program"
    component = "eager" if finding.kind in (Kind.EAGER_CRASH, Kind.EAGER_INTERNAL_ASSERT) else "inductor"
    if component == "inductor":
        component = _COMPONENTS.get(str(finding.triage.get("backend", "")), component)
    device = str(finding.target.get("device", "cpu"))
    symptom = _GENERATOR if finding.facts.get("generator") else _SYMPTOMS[finding.kind]
    return f"[{component}][{device}] {operators}: {symptom}"


def fence(text: str, language: str = "") -> str:
    """A fenced block that ``text`` cannot leave: the fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"


def code(text: str) -> str:
    """An inline code span that ``text`` cannot leave; line breaks become spaces, pipes fit into tables."""
    line = " ".join(str(text).split()).replace("|", "\\|")
    marks = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def escape(text: str) -> str:
    """Plain text for Markdown: one line, without markup, links, mentions or HTML."""
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]#|~!])", r"\\\1", line).replace("@", "@\u200b")


def _section(heading: str, body: str) -> str:
    return f"## {heading}\n\n{body}" if body else ""


def _notice(finding: Finding) -> str:
    lines = ["Found by the fuzzer Eddy (label: `topic: fuzzer`). Draft: read it, run the script, then file it."]
    if finding.debatable:
        lines.append(f"**Debatable**: {escape(finding.debatable)}. Maintainers may call this intended.")
    if finding.state is State.KNOWN:
        lines.append(f"**Known**: looks like {escape(finding.known_issue)}.")
    if finding.state is State.FLAKY:
        lines.append("**Flaky**: fresh processes did not all show it.")
    if finding.state is State.SUSPECT:
        lines.append("**Suspect**: not confirmed in fresh processes yet.")
    if "llm" in finding.engine:
        lines.append("The program was written by a language model; say so when you file this.")
    if finding.triage.get("hypothesis"):
        lines.append(f"Hypothesis of a language model, *unverified*: {escape(finding.triage['hypothesis'])}")
    return "\n\n".join(lines)


def _script(finding: Finding, repro: str) -> str:
    note = "Reduced from the program that was found." if finding.reduced else "The program as it was found."
    return note + "\n\n" + fence(repro or finding.shown_text, "python")


def _symptom(finding: Finding) -> str:
    parts = [escape(finding.reason)] if finding.reason else []
    leaves = finding.facts.get("leaves", [])
    for leaf in leaves[:1]:
        parts.append(_leaf_table(leaf))
    if len(leaves) > 1:
        others = ", ".join(code(_leaf_name(leaf)) for leaf in leaves[1:])
        parts.append(f"Also differing: {others}.")
    for stage, fault in finding.facts.get("faults", {}).items():
        where = f"Stage {code(stage)} raised {code(fault.get('type', ''))}:"
        parts.append(where + "\n\n" + fence(_compiler_output(str(fault.get("message", "")))))
    if not finding.facts.get("faults") and finding.kind is Kind.MISSING_CHECK:
        parts.append("Eager raises, the compiled function returns.")
    end = finding.facts.get("end", {})
    if end.get("how", "done") != "done":
        parts.append(f"The process ended by {escape(_ending(end))} in stage {code(end.get('stage', ''))}.")
    return "\n\n".join(parts)


#: Torch's words around what a C++ compiler says: the command, whose flags the environment tells.
_COMMAND = re.compile(r"Command:\n[^\n]*\n\nOutput:\n")
_GENERATED = re.compile(r"/\S*/(\w+\.(?:main\.)?cpp)\b")
_PROGRAM = re.compile(r"/\S*/(program\.py)\b")


def _compiler_output(text: str) -> str:
    """A message without the command line of a C++ compiler, and with the bare names of what ran and was generated."""
    text = _bare(text)
    return _GENERATED.sub(r"\1", _COMMAND.sub("", text)) if _COMMAND.search(text) else text


#: What torch's log puts before every line (time, process, place, frame), and where packages lie on this machine.
_STAMP = re.compile(r"^[VIWEC]\d{4} [\d:.]+ +\d+ \S+:\d+\] (?:\[[\w/]+\] ?)*", re.M)
_INSTALLED = re.compile(r"/\S*/(?:(?:site|dist)-packages|stage(?=/harness))/(\w)")


def _bare(text: str) -> str:
    """Without the folders of this machine."""
    return _INSTALLED.sub(r"\1", _PROGRAM.sub(r"\1", text))


def _leaf_name(leaf: Mapping[str, Any]) -> str:
    return str(leaf.get("path", "?")) + (" (second call)" if leaf.get("second") else "")


def _ending(end: Mapping[str, Any]) -> str:
    number = int(end.get("signal") or 0)
    if number:
        try:
            return signal.Signals(number).name
        except ValueError:
            return f"signal {number}"
    return f"{end.get('how')} {end.get('why', '')}".strip()


def _leaf_table(leaf: Mapping[str, Any]) -> str:
    lines = [f"Value {code(_leaf_name(leaf))}:"]
    eager, compiled = leaf.get("eager"), leaf.get("compiled")
    if eager and compiled:
        rows = [
            (name, eager.get(name), compiled.get(name))
            for name in ("dtype", "shape", "stride", "offset", "requires_grad", "device")
            if eager.get(name) != compiled.get(name)
        ]
        facts = f"{code(eager.get('dtype'))} of shape {code(eager.get('shape'))}"
        if leaf.get("differing", 0) > 0:
            facts += f", {leaf['differing']} of {leaf.get('numel', '?')} elements differ"
        lines[0] = f"Value {code(_leaf_name(leaf))}, {facts}:"
        if rows:
            lines.append(_table(("property", "eager", "compiled"), rows))
    elif leaf.get("eager_text") or leaf.get("compiled_text"):
        lines.append(_table(("eager", "compiled"), [(leaf.get("eager_text", ""), leaf.get("compiled_text", ""))]))
    worst = leaf.get("worst") or []
    if worst:
        keys = ("index", "reference", "eager", "compiled")
        elements = [tuple(element.get(key, "–") for key in keys) for element in worst[:_ROWS]]
        lines.append(_table(("element", "float64", "eager (expected)", "compiled (got)"), elements))
    return "\n\n".join(lines)


def _table(head: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(code(_cell(cell)) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _oracle(finding: Finding) -> str:
    leaf = next(iter(finding.facts.get("leaves", [])), None)
    if leaf is None or "eager_err" not in leaf:
        reference = str((leaf or {}).get("reference", ""))
        return f"No float64 reference ({escape(reference)})." if reference.startswith("none") else ""
    ulps = (
        f"Largest error against float64, in ULPs of the result's dtype: eager {_cell(leaf['eager_err'])}, "
        f"compiled {_cell(leaf.get('compiled_err', 0.0))}."
    )
    if leaf.get("max_ulp") is not None:
        ulps += (
            f" Compiled against eager: {_cell(leaf['max_ulp'])} ULPs, "
            f"{_cell(leaf.get('max_abs', 0.0))} absolute, {_cell(leaf.get('max_rel', 0.0))} relative."
        )
    rmse = ""
    if leaf.get("eager_rmse") is not None:
        rmse = f" RMSE: eager {_cell(leaf['eager_rmse'])}, compiled {_cell(leaf.get('compiled_rmse', 0.0))}."
    words = {True: "accepts", False: "rejects", None: "cannot judge"}
    return ulps + rmse + f" `torch._dynamo.utils.same` (default tolerances) {words[leaf.get('same')]} the result."


def _checks(finding: Finding) -> str:
    lines = []
    if finding.attempts:
        lines.append(f"- Shown again in {finding.confirmations} of {finding.attempts} fresh processes.")
    lines += [f"- {escape(gate)}: {escape(outcome)}" for gate, outcome in finding.gates]
    if finding.duplicates:
        lines.append(f"- {finding.duplicates} more programs of the campaign failed in the same way.")
    return "\n".join(lines)


def _stages(finding: Finding) -> str:
    lines = []
    triage = finding.triage
    if finding.stage:
        lines.append(f"- Stage of execution: {code(finding.stage)}.")
    if triage.get("backend"):
        lines.append(f"- First failing backend: {code(triage['backend'])}.")
    bisected = triage.get("bisect") or {}
    if bisected.get("subsystem"):
        named = f" no. {bisected['number']}: {code(bisected['what'])}" if bisected.get("what") else ""
        lines.append(f"- Named by torch's own bisector: {code(bisected['subsystem'])}{named}.")
        lines.append(f"- Replay: {code(bisected['replay'])}.")
    lines += _classes(triage.get("class"))
    features = _features(triage)
    if features:
        lines.append(f"- {features}.")
    if triage.get("group"):
        lines.append("- Probably the same bug: " + ", ".join(code(name) for name in triage["group"][:_ROWS]) + ".")
    if triage.get("variants"):
        rows = list(triage["variants"].items())
        lines.append("\nThe same program otherwise compiled:\n\n" + _table(("backend or option", "outcome"), rows))
    if triage.get("versions"):
        lines.append("\nReleases tried:\n\n" + _releases(triage))
    return "\n".join(lines)


def _kernel(triage: Mapping[str, Any]) -> str:
    text = str(triage.get("kernel") or "")
    return fence(text, "python" if "@triton" in text else "cpp") if text else ""


def _classes(found: Any) -> list[str]:
    """What the rules say, and why; machine-made, and marked so."""
    if not isinstance(found, Mapping):
        return []
    words = ", ".join(f"{part} {code(found[part])}" for part in PARTS if found.get(part))
    reasons: Any = found.get("reasons")
    reasons = reasons if isinstance(reasons, Mapping) else {}
    lines = [f"- Class (unverified, by rules): {words}."] if words else []
    for part in PARTS:
        said = "; ".join(str(reason) for reason in reasons.get(part) or ())
        if words and said:
            lines.append(f"  - {part.capitalize()}: {escape(said)}.")
    return lines


def _similar(triage: Mapping[str, Any]) -> str:
    """Imported issues that look alike; nothing where none were imported."""
    lines = []
    for item in triage.get("similar") or ():
        if isinstance(item, Mapping):
            number = code(f"#{item.get('number', '?')}")
            link = str(item.get("link", ""))
            named = f"[{number}]({link})" if PLAIN_LINK.fullmatch(link) else number
            lines.append(f"- {named} {escape(item.get('title', ''))} (score {_cell(item.get('score', 0.0))})")
    if not lines:
        return ""
    return "By words and operators; read them before you file.\n\n" + "\n".join(lines)


def _features(triage: Mapping[str, Any]) -> str:
    """``Needs: …; does not need: …``, each switched off in turn; empty before that was done."""
    parts = []
    if triage.get("essential_features"):
        parts.append("needs: " + ", ".join(code(item) for item in triage["essential_features"]))
    if triage.get("free_features"):
        parts.append("does not need: " + ", ".join(code(item) for item in triage["free_features"]))
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _releases(triage: Mapping[str, Any]) -> str:
    evidence = triage.get("replays", {})
    rows = []
    for version, outcome in triage["versions"].items():
        seen = evidence.get(version, {})
        rows.append((version, outcome, str(seen.get("reason", ""))[:80], seen.get("date", "")))
    if any(row[2] or row[3] for row in rows):
        return _table(("torch", "outcome", "what", "tried"), rows)
    return _table(("torch", "outcome"), [row[:2] for row in rows])


def _log(finding: Finding) -> str:
    """The end of what the process printed, folded: torch repeats there what its exception says."""
    printed = _bare(_STAMP.sub("", str(finding.facts.get("log", ""))))
    lines = printed.splitlines()[-_LOG_LINES:]
    if not any(line.strip() for line in lines):
        return ""
    return (
        "<details><summary>what the process printed</summary>\n\n" + fence("\n".join(lines), "text") + "\n\n</details>"
    )


def _environment(finding: Finding) -> str:
    """The target that failed, and what torch's ``collect_env`` says of it, folded."""
    target, collected = finding.target, str(finding.triage.get("environment") or "")
    rows = [(name, value) for name, value in target.items() if name not in _PRIVATE and value not in ("", None)]
    told = _table(("", "value"), rows) if rows else ""
    if not collected:
        return told
    return f"{told}\n\n<details><summary>collect_env</summary>\n\n{fence(collected, 'text')}\n\n</details>"


def _how_to_run(finding: Finding) -> str:
    name = "reduced.py" if finding.reduced else "repro.py"
    return (
        f"`python {name}`, with nothing but torch installed: it exits with 1 and says what differs when the failure "
        "shows, with 0 and `did not reproduce` when it does not."
    )
