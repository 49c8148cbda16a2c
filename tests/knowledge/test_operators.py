"""Operators: the extract that ships, families for any name, neighbours, and what a bad file says."""

import zlib

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.knowledge.build import write_extract
from fuzzer.knowledge.families import Families
from fuzzer.knowledge.operators import FORMAT, Literal, Operators, Tensor
from harness.catalogue import source


@pytest.fixture(scope="module")
def shipped():
    return Operators.load_extract()


def record(name="amax", **more):
    tensor = {"t": "tensor", "shape": [2, 3], "dtype": "float32", "low": -1.0, "high": 1.0, "grad": False}
    call = {"args": [tensor], "kwargs": {"dim": {"t": "literal", "text": "-1"}}}
    plain = {
        "name": name, "variant": "", "family": "", "aten": [f"aten.{name}"], "dtypes": ["float32"], "autograd": True,
        "forms": [{"form": "function", "text": f"torch.{name}"}], "random": False, "schema": [], "calls": [call],
        "lowering": "lowered",
    }  # fmt: skip
    return plain | more


def test_the_extract_that_ships_is_large_and_whole(shipped):
    assert len(shipped) >= 600
    assert shipped.fingerprint["torch"].startswith("2.13")
    assert all(operator.calls and operator.forms and operator.dtypes for operator in shipped)
    assert len(shipped.by_family) >= 30 and len(shipped.by_family.get("other", [])) < 5
    conv = shipped.by_key["nn.functional.conv2d"]
    assert conv.family == "convolution" and "aten.convolution" in conv.aten and conv.autograd
    assert {form.kind for operator in shipped for form in operator.forms} == set(source.FORMS)


def test_every_shipped_call_renders(shipped):
    for operator in shipped:
        for form in operator.forms:
            for call in operator.calls_of(form):
                bound = call.bind()
                text = form.render(bound.args, bound.kwargs, out="o", module="m")
                mode = "exec" if form.kind == "statement" else "eval"
                compile(text, operator.key, mode)
                for _, making in bound.inputs:
                    compile(making, operator.key, "eval")
                assert len(bound.inputs) == len(call.tensors)


@pytest.mark.torch
def test_shipped_calls_run(shipped):
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13"):
        pytest.skip("the extract is of torch 2.13")
    torch.manual_seed(0)
    failed, tried = [], 0
    for operator in list(shipped)[::9]:
        form, call = operator.forms[0], operator.calls_of(operator.forms[0])[0]
        bound = call.bind()
        scope = {"torch": torch} | {name: eval(text, {"torch": torch}) for name, text in bound.inputs}
        tried += 1
        try:
            exec(form.render(bound.args, bound.kwargs), scope)
        except Exception as error:
            failed.append(f"{operator.key}: {error}")
    assert tried > 90 and failed == []


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten.add.Tensor", "pointwise_binary"),
        ("aten.add_.Tensor", "in_place"),
        ("aten.max.dim", "index_reduction"),
        ("aten.max.default", "reduction"),
        ("aten.max.other", "pointwise_binary"),
        ("aten._softmax.default", "softmax"),
        ("aten.index_put_.default", "index_write"),
        ("aten.bernoulli_.float", "random"),
        ("aten.copy_.default", "in_place"),
        ("prims.convert_element_type.default", "cast"),
        ("aten.sum.dim_IntList", "reduction"),
        ("aten.t.default", "view"),
        ("aten.gelu_backward.default", "activation"),
        ("aten._foreach_exp.List", "pointwise_unary"),
        ("aten.convolution_backward.default", "convolution"),
        ("aten._to_copy.default", "cast"),
        ("aten.unheard_of.default", "other"),
        ("mylib.thing.default", "other"),
    ],
)
def test_families_of_dispatched_names(shipped, name, family):
    assert shipped.family_of_aten(name) == family


@given(st.text(max_size=30))
def test_any_name_has_a_family(text):
    families = Families.load()
    assert families.of(text) in families.by_id
    assert families.of(f"aten.{text}") in families.by_id


def test_families_are_worded():
    families = Families.load()
    assert all(len(family.description) > 20 and family.rules for family in families.by_id.values())


def test_neighbours_share_family_and_arity(shipped):
    amax = shipped.by_key["amax"]
    near = shipped.neighbours(amax)
    assert shipped.by_key["amin"] in near[:5] and amax not in near
    assert all(other.family == amax.family and other.arities & amax.arities for other in near)
    assert shipped.neighbours(shipped.by_key["bmm"])[0].family == "matmul"


def test_records_become_typed():
    operators = Operators.from_records([record(), record("amin", family="mine")])
    amax = operators.by_key["amax"]
    assert amax.family == "reduction" and operators.by_key["amin"].family == "mine"
    assert amax.calls[0].args == (Tensor((2, 3), "float32", -1.0, 1.0),) and amax.calls[0].kwargs["dim"] == Literal(
        "-1"
    )
    assert amax.calls[0].record()["kwargs"] == record()["calls"][0]["kwargs"]
    bound = amax.calls[0].bind()
    assert amax.forms[0].render(bound.args, bound.kwargs) == "torch.amax(x0, dim=-1)"


@pytest.mark.parametrize("damage", [{"calls": []}, {"forms": [{"form": "dance", "text": "x"}]}, {"aten": None},
                                    {"forms": [{"form": "function", "text": "f", "calls": [7]}]}])  # fmt: skip
def test_a_bad_record_is_named(damage):
    with pytest.raises(UserError, match="operator amax: malformed"):
        Operators.from_records([record(**damage)])


def test_an_extract_round_trips(tmp_path):
    path = tmp_path / "deep" / "mine.msgpack.z"
    written = write_extract([record(), record("amin")], path, {"torch": "9.9"})
    read = Operators.load_extract(path)
    assert set(read.by_key) == set(written.by_key) == {"amax", "amin"} and read.fingerprint == {"torch": "9.9"}
    assert "## reduction (2)" in path.with_name("mine.msgpack.z.txt").read_text()
    with pytest.raises(UserError, match="no operator"):
        write_extract([], path, {})
    assert len(Operators.load_extract(path)) == 2


def test_a_bad_extract_says_which_and_what_to_do(tmp_path):
    path = tmp_path / "x.msgpack.z"
    for content, words in [
        (b"garbage", "not an extract"),
        (zlib.compress(b"\xc1"), "not an extract"),
        (zlib.compress(msgpack.packb([1])), "no format number"),
        (zlib.compress(msgpack.packb({"format": FORMAT + 1, "operators": []})), "update Eddy"),
        (zlib.compress(msgpack.packb({"format": FORMAT, "operators": [{"name": "f"}]})), "operator f: malformed"),
    ]:
        path.write_bytes(content)
        with pytest.raises(UserError, match=words) as caught:
            Operators.load_extract(path)
        assert str(path) in str(caught.value)
    with pytest.raises(UserError, match=r"cannot be read.*knowledge build"):
        Operators.load_extract(tmp_path / "missing")


def test_bad_family_files_are_named(tmp_path):
    path = tmp_path / "families.toml"
    for content, words in [
        ("[[family]]\nid = 'x'\n", "family 1 lacks"),
        ("= =", "families.toml"),
        ("a = 1", "no \\[\\[family"),
    ]:
        path.write_text(content)
        with pytest.raises(UserError, match=words):
            Families.load(path)
