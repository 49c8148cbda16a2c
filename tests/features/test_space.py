"""The feature space that ships is whole, and a broken file is refused with a line that helps."""

from __future__ import annotations

import pytest

from fuzzer.exits import UserError
from fuzzer.features.space import DEFAULT_PATH, DETECTORS, FeatureSpace, tomllib

GOOD = """
[group]
view = ["view"]
[dimension.shape]
description = "shape"
[dimension.shape.values]
ones = { description = "size 1", how = "use 1" }
"""


@pytest.fixture(scope="module")
def space() -> FeatureSpace:
    return FeatureSpace.load()


def test_the_shipped_space_covers_every_dimension(space: FeatureSpace) -> None:
    expected = (
        "op_family adjacency topology dtype dtype_mix cast shape layout broadcast values boundary mode context config "
        "control python mutation mechanism"
    )
    assert set(space.dimensions) == set(expected.split())
    assert 120 <= len(space.features) <= 240
    assert len(space.dimensions["adjacency"].values) == 30


def test_families_are_those_of_the_catalogue(space: FeatureSpace) -> None:
    tables = tomllib.loads(DEFAULT_PATH.with_name("families.toml").read_text(encoding="utf-8"))["family"]
    families = {table["id"] for table in tables} - {"other"}
    named = {word for feature in space.dimensions["op_family"].values for word in feature.arguments}
    assert set(space.group_of) <= families and named <= families
    assert families - named - set(space.group_of) == {"item"}  # what leaves the tensor world is read from the text


def test_ids_read_dimension_equals_value(space: FeatureSpace) -> None:
    for name, feature in space.features.items():
        assert name == f"{feature.dimension}={feature.value}"
        assert space.describe(name) and feature.how
        assert feature.detector in DETECTORS


def test_no_two_features_share_a_description(space: FeatureSpace) -> None:
    described = [feature.description for feature in space.features.values()]
    assert len(set(described)) == len(described)


def test_compatible(space: FeatureSpace) -> None:
    assert not space.compatible("mode=train", "mode=eval")  # one mode a program
    assert not space.compatible("mode=backward", "context=no_grad")
    assert not space.compatible("context=no_grad", "mode=backward")  # exclusion is symmetric
    assert space.compatible("dtype=uint8", "dtype=float16")
    assert space.compatible("dtype=uint8", "mode=dynamic")


def test_unknown_feature_is_a_user_error(space: FeatureSpace) -> None:
    with pytest.raises(UserError, match="dtype=uint7"):
        space.describe("dtype=uint7")


@pytest.mark.parametrize(
    "old, new, says",
    [
        ('how = "use 1"', 'haw = "use 1"', r"dimension\.shape\.values\.ones\.haw: unknown key"),
        (', how = "use 1"', "", r"dimension\.shape\.values\.ones: no `how`"),
        ('"use 1"', "1", r"ones\.how: 1 has the wrong type"),
        ('"use 1"', '" "', r"ones\.how: empty"),
        ("ones =", "onez =", r"never reports 'onez'"),
        ('how = "use 1"', 'how = "use 1", detector = "shapes"', r"no detector 'shapes'"),
        ('how = "use 1"', 'how = "use 1", excludes = ["shape=x"]', r"excludes 'shape=x'"),
        ('how = "use 1"', 'how = "use 1", weight = 0', r"weight: 0\.0 is outside"),
        ('how = "use 1"', 'how = "use 1", arguments = []', r"arguments: empty"),
        ("[dimension.shape.values]\nones", "[dimension.shape.valves]\nones", r"dimension\.shape\.valves: unknown key"),
        ('["view"]', '"view"', r"group\.view: not a list"),
        ("[group]", "[groups]", r"groups: unknown table"),
        ("[group]", "[group", r"not valid TOML"),
    ],
)
def test_malformed_entries_name_file_key_and_remedy(tmp_path, old: str, new: str, says: str) -> None:
    file = tmp_path / "features.toml"
    file.write_text(GOOD)
    assert set(FeatureSpace.load(file).features) == {"shape=ones"}
    assert old in GOOD
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(UserError, match=says) as caught:
        FeatureSpace.load(file)
    assert str(file) in str(caught.value)


def test_missing_file(tmp_path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        FeatureSpace.load(tmp_path / "none.toml")
