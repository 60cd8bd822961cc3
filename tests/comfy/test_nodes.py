"""The data on node types: whole, and what it says of widgets and outputs."""

from __future__ import annotations

import ast

import pytest
from pydantic import ValidationError

from cardfit.comfy.expressions import FUNCTIONS, dotted, parse
from cardfit.comfy.nodes import NodeKind, known

KINDS = sorted(known().nodes.items())


def rules(kind: NodeKind) -> list[str]:
    found = [rule for output in kind.out.values() for rule in output.rules.values()]
    found += [kind.every.like] if kind.every and kind.every.like else []
    found += [output.like for output in kind.out.values() if output.like]
    for part in (kind.sampler, kind.decode, kind.saves):
        if part is not None:
            found += [value for value in part.model_dump().values() if isinstance(value, str)]
    return found


def widgets(kind: NodeKind) -> set[str]:
    found = set()
    for each in kind.widgets:
        if isinstance(each, dict):
            found |= {name for key, names in each.items() if key != "by" for name in names}
        elif each is not None:
            found.add(each.removeprefix("*"))
    return found


def test_there_are_many_and_the_known_packs_are_among_them():
    names = dict(KINDS)
    assert len(names) > 250
    packs = [
        "UnetLoaderGGUF",
        "WanVideoSampler",
        "WanVideoModelLoader",
        "VHS_LoadVideo",
        "VHS_VideoCombine",
        "ImpactInt",
    ]
    assert set(packs) <= set(names)
    assert len(known().sources) >= 2


@pytest.mark.parametrize(("name", "kind"), KINDS, ids=[name for name, _ in KINDS])
def test_every_rule_is_made_of_known_functions(name, kind):
    tables = {f"{table}_{side}" for table in known().tables for side in ("width", "height")}
    for rule in rules(kind):
        for node in ast.walk(parse(rule)):
            if isinstance(node, ast.Call):
                assert dotted(node.func) in {*FUNCTIONS, *tables}, rule


@pytest.mark.parametrize(("name", "kind"), KINDS, ids=[name for name, _ in KINDS])
def test_what_is_named_is_a_widget(name, kind):
    """Loaders and defaults name widgets that the type has; a type of dict-style widgets lists none."""
    if not kind.widgets:
        return
    assert set(kind.defaults) <= widgets(kind)
    for load in kind.loads:
        assert load.file in widgets(kind)
        assert load.dtype is None or load.dtype in widgets(kind)


def test_plain_types_have_no_rules():
    assert not {name for name, kind in KINDS if not kind.same} & set(known().plain)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (
            "KSampler",
            [7, "randomize", 20, 8, "euler", "normal", 1],
            {"seed": 7, "steps": 20, "denoise": 1},
        ),
        ("KSampler", [7, 20, 8, "euler", "normal", 1], {"seed": 7, "steps": 20, "denoise": 1}),
        ("KSampler", [7], {"seed": 7}),
        ("KSampler", [], {}),
        (
            "ResizeImageMaskNode",
            ["scale longer dimension", 1536, "lanczos"],
            {"resize_type.longer_size": 1536, "scale_method": "lanczos"},
        ),
        ("ResizeImageMaskNode", ["a new way", "lanczos"], {"scale_method": "lanczos"}),
        ("CustomCombo", ["b", 1, "a", "b", ""], {"choice": "b", "options": ["a", "b"]}),
    ],
)
def test_widgets_by_position(kind, values, expected):
    found = known().nodes[kind].named(values)
    assert {key: found.get(key) for key in expected} == expected
    assert set(found) <= widgets(known().nodes[kind])


def test_a_rule_that_cannot_be_read_is_refused():
    with pytest.raises((ValidationError, ValueError)):
        NodeKind.model_validate({"out": {0: {"width": "1 +"}}})
    with pytest.raises(ValidationError):
        NodeKind.model_validate({"out": {0: {"colour": "1"}}})
