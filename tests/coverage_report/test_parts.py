"""The pure parts of a report on hand-made evidence."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fuzzer.coverage_report.events_part import events_part
from fuzzer.coverage_report.evidence import Evidence, Run
from fuzzer.coverage_report.features_part import features_part
from fuzzer.coverage_report.native_part import Library, native_part
from fuzzer.coverage_report.python_part import python_part
from fuzzer.coverage_report.sources import Function, Registration, Source


def record(number: int, features: list[str], coverage: dict[str, Any], keys: tuple[str, ...] = ()) -> dict[str, Any]:
    outcome = {"realised": features}
    return {"t": "run", "n": number, "at": 1.0 * number, "outcome": outcome, "coverage": coverage, "keys": keys}


def test_an_id_belongs_to_the_first_run_that_reached_it() -> None:
    evidence = Evidence.of(
        [
            {"t": "plan"},
            record(1, ["a"], {"python": {"x.py": [1, 2]}}, ("events:inductor.mm~1", "events:inductor.mm~3")),
            record(2, ["b"], {"python": {"x.py": [2, 3]}}, ("events:inductor.mm~2", "kernels:cpp loops=1")),
        ]
    )
    assert [run.coverage for run in evidence.runs] == [{"python": {"x.py": [1, 2]}}, {"python": {"x.py": [3]}}]
    assert evidence.reached("python") == {"x.py": {1, 2, 3}}
    assert evidence.counters == {"inductor.mm": 2} and evidence.kernels == {"cpp loops=1": 1}


SOURCES = {
    "torch/fx/a.py": Source(
        "torch/fx/a.py",
        frozenset(range(1, 10)),
        (Function("f", 1, frozenset({2, 3})), Function("g", 4, frozenset({5, 6, 7}))),
    ),
    "torch/fx/b.py": Source("torch/fx/b.py", frozenset({1, 2}), (Function("h", 1, frozenset({2})),)),
}


def test_python_tells_what_only_start_up_reached_from_what_nothing_did() -> None:
    reached = {"torch/fx/a.py": {1, 4, 5}}
    part = python_part(reached, {"torch/fx/a.py": {3}}, SOURCES)
    assert (part["lines"], part["start_up"], part["executable"]) == (3, 1, 6)
    assert part["never_functions"] == [] and [row["file"] for row in part["never_files"]] == ["torch/fx/b.py"]
    blind = python_part(reached, None, SOURCES)
    assert blind["start_up"] is None and [row["function"] for row in blind["never_functions"]] == ["f"]
    assert part["packages"][0]["package"] == "torch.fx" and part["packages"][0]["functions"] == 3
    assert python_part(reached, None, {})["lines"] == 3


def test_native_counts_instances_of_a_kernel_as_one_and_keeps_blocks_apart() -> None:
    names = {
        16: b"_ZN2at6native4AVX23sumEv", 32: b"_ZN2at6native6AVX5123sumEv", 48: b"_ZN2at6native4prodEv",
        64: b"_ZN3c105DeviceC1Ev", 80: b"_ZN2at6native4prodEv.cold",
    }  # fmt: skip
    library = Library("libtorch_cpu", tuple(names), names)
    runs = [
        Run(7, 1.0, (), {"native": {"libtorch_cpu": [32, 36]}}),
        Run(9, 2.0, (), {"native": {"libtorch_cpu": [64]}}),
    ]
    reached = {"libtorch_cpu": {32, 36, 64}}
    demangled = {16: "at::native::AVX2::sum()", 32: "at::native::AVX512::sum()", 48: "at::native::prod()"}
    text = {names[offset]: name for offset, name in demangled.items()}
    part = native_part(reached, {}, {"libtorch_cpu": library}, runs, lambda name: text.get(name, name.decode()))
    assert (part["functions"], part["blocks"]) == (2, 1)
    assert (part["kernels"], part["kernels_reached"]) == (2, 1)
    assert part["never_kernels"] == [{"name": "at::native::prod", "instances": 1}]
    assert [(row["run"], row["namespace"]) for row in part["newest"]] == [(9, "c10"), (7, "at::native")]
    spaces = {row["namespace"]: (row["new"], row["functions"]) for row in part["namespaces"]}
    assert spaces == {"at::native": (1, 3), "c10": (1, 1), "(cold parts)": (0, 1)}


def test_events_are_held_against_the_tables_that_are_known() -> None:
    keys = ("events:graph_break.Call to NAME~1", "events:unimplemented.Dynamic shape operator~1", "events:frames.ok~2")
    evidence = Evidence.of([record(1, [], {}, keys), record(2, [], {}, keys[:1])])
    registrations = [
        Registration("lowering", ("aten.sin",), "torch/fx/a.py", "f", 1),
        Registration("lowering", ("aten.cos",), "torch/fx/b.py", "h", 1),
    ]
    breaks = ["Call to `torch._dynamo.graph_break()`", "Call to nothing at all? no", "Dynamic shape operator", "Other"]
    part = events_part(evidence, {"torch/fx/a.py": {2}}, SOURCES, registrations, None, breaks)
    assert [row["name"] for row in part["lowerings"]["seen"]] == ["aten.sin"]
    assert part["lowerings"]["never"] == ["aten.cos"] and part["lowerings"]["known"] == 2
    assert part["graph_breaks"]["never"] == ["Other"]
    assert part["graph_breaks"]["seen"][0] == {"name": "Call to NAME", "count": 2}
    assert part["counters"] == {"registry": "", "known": 0, "seen": [{"name": "frames.ok", "count": 1}], "never": []}
    assert part["decompositions"]["registry"] == ""


def test_lift_is_of_a_features_own_time() -> None:
    def run(number: int, feature: str, lines: int) -> Run:
        return Run(number, 0.0, (feature, "always"), {"python": {"x.py": list(range(lines))}} if lines else {})

    early = [run(k, "early", 100) for k in range(60)]
    late = [run(k, "good" if k % 2 else "poor", 4 if k % 2 else 0) for k in range(60, 400)]
    rows = {row["feature"]: row for row in features_part([*early, *late], ["good", "rare"])["features"]}
    assert rows["good"]["lift"] > rows["poor"]["lift"] and rows["good"]["per_run"] == 4.0
    assert rows["early"]["per_run"] == 100.0 and rows["early"]["lift"] < 1.3  # everything was new then
    assert 0.95 < rows["always"]["lift"] < 1.05
    assert features_part(early, ["early", "rare"])["never"] == ["rare"]


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcd")), st.integers(0, 20)), max_size=40))
def test_shares_of_features_add_up_to_what_was_found(rows: list[tuple[set[str], int]]) -> None:
    runs = [
        Run(number, 0.0, tuple(sorted(features)), {"python": {"x.py": list(range(count))}})
        for number, (features, count) in enumerate(rows)
    ]
    part = features_part(runs)["features"]
    credited = sum(count for features, count in rows if features)
    assert abs(sum(row["share"] for row in part) - credited) <= 0.05 * len(part) + 1e-9
    assert all(row["new"] == sum(count for features, count in rows if row["feature"] in features) for row in part)
