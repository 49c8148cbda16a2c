import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.known_issues import KnownIssues, version_in
from fuzzer.verdict import Kind

ENTRY = """
[[issue]]
id = "tracker#1"
link = "https://example.org/1"
title = "a title"
versions = [">=2.5,<2.14", "2.3"]
kinds = ["compile_error"]
[issue.match]
ops_any = ["aten.arg*"]
ops_all = ["aten.add", "aten.mul"]
dtypes = ["int8"]
cause = "no viable \\\\w+"
text = "\\\\.t\\\\(\\\\)"
"""

SEEN = {
    "kind": Kind.COMPILE_ERROR,
    "ops": ["aten.add.Tensor", "aten.mul.Scalar", "aten.argmin.default"],
    "dtypes": ["float32", "int8"],
    "cause": "error: no viable conversion",
    "text": "return x.t()",
    "torch_version": "2.13.0+cpu",
}


@pytest.mark.parametrize("version, wanted, holds", [
    ("2.13.0+cpu", ">=2.5", True),
    ("2.5.1", ">=2.5.1,<=2.14.1", True),
    ("2.14.1", "<=2.14", False),
    ("2.13.1", "2.13", True),
    ("2.13.1", "!=2.13", False),
    ("2.1.3", "2.13", False),
    ("2.14.0.dev20251101+cpu", ">=2.14", False),
    ("2.14.0a0+git12ab", "<2.14", True),
    ("2.14.0rc1", "<2.14.0", True),
    ("2.14.0", "<2.14.0", False),
    ("v2.14.0", ">2.13", True),
    ("10.0", ">9.9", True),
    ("unknown", ">=0", False),
])  # fmt: skip
def test_version_ranges(version, wanted, holds):
    assert version_in(version, wanted) is holds


_releases = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 9))


@given(_releases, _releases)
def test_versions_compare_as_their_numbers_do(left, right):
    version, bound = ".".join(map(str, left)) + "+cu121", ".".join(map(str, right))
    assert version_in(version, f">={bound}") is (left >= right)
    assert version_in(version, f"<{bound}") is (left < right)
    assert version_in(version, bound) is (left == right)


@pytest.fixture
def issues(tmp_path):
    path = tmp_path / "issues.toml"
    path.write_text(ENTRY)
    return KnownIssues.load(path, strict=True)


def test_an_entry_matches_when_all_its_conditions_hold(issues):
    found = issues.match(**SEEN)
    assert found is not None and found.id == "tracker#1"
    assert issues.match(**{**SEEN, "torch_version": "2.3.1"}) is found


@pytest.mark.parametrize("change", [
    {"kind": Kind.WRONG_VALUE},
    {"ops": ["aten.add.Tensor", "aten.argmin.default"]},
    {"ops": ["aten.add.Tensor", "aten.mul.Scalar"]},
    {"ops": ["aten.addmm.default", "aten.mul.Scalar", "aten.argmin.default"]},
    {"dtypes": ["uint8"]},
    {"cause": "other"},
    {"text": "return x"},
    {"torch_version": "2.14.0"},
])  # fmt: skip
def test_one_failed_condition_is_enough_not_to_match(issues, change):
    assert issues.match(**{**SEEN, **change}) is None


@pytest.mark.parametrize("old, new, words", [
    ('kinds = ["compile_error"]', 'kinds = ["pass"]', "`kinds` has 'pass'; use .*wrong_value"),
    ('link = "https://example.org/1"', "", "`link` is missing"),
    ('">=2.5,<2.14"', '"~2.5"', "`versions`: '~2.5' is no version range"),
    ('"no viable \\\\w+"', '"(("', "`match.cause` is no regular expression"),
    ("dtypes =", "dtype =", "`match.dtype` is no key; use .*dtypes"),
    ('["int8"]', "8", "`dtypes` is 8; write a list of strings"),
])  # fmt: skip
def test_a_malformed_entry_is_named_and_the_rest_loads(tmp_path, old, new, words):
    path = tmp_path / "issues.toml"
    assert old in ENTRY
    path.write_text(ENTRY.replace(old, new) + ENTRY.replace("tracker#1", "tracker#2"))
    loaded = KnownIssues.load(path)
    assert [issue.id for issue in loaded.issues] == ["tracker#2"]
    [warning] = loaded.warnings
    assert warning.startswith(f"{path}: entry 1 (tracker#1): ")
    with pytest.raises(UserError, match=words):
        KnownIssues.load(path, strict=True)


def test_an_entry_without_conditions_would_hide_everything(tmp_path):
    path = tmp_path / "issues.toml"
    path.write_text(ENTRY.split("[issue.match]")[0] + "match = {ops_any = []}\n")
    assert "would hide every failure" in KnownIssues.load(path).warnings[0]


def test_the_list_that_ships_is_sound_and_knows_narrow_integer_reductions():
    shipped = KnownIssues.load(strict=True)
    seen = {"kind": Kind.WRONG_VALUE, "cause": "", "text": "", "torch_version": "2.13.0+cpu"}
    found = shipped.match(ops=["aten.relu.default", "aten.amin.default"], dtypes=["uint8"], **seen)
    assert found is not None and found.id == "pytorch#191499"
    assert shipped.match(ops=["aten.amin.default"], dtypes=["int16"], **seen) is None
    assert shipped.match(ops=["aten.minimum.default"], dtypes=["uint8"], **seen) is None
