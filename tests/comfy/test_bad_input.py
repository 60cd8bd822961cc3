"""Whatever stands in a file: a reading, or one clear sentence that names the node; never a crash, never a hang."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardfit.comfy import files
from cardfit.comfy.expressions import ExpressionError, evaluate
from cardfit.comfy.reader import read_workflow
from cardfit.comfy.wanted import safe_parts
from cardfit.errors import BadFile, BadRequest, InputError

QUIET = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(raw: Any) -> None:
    """Read it as bytes, as from a file."""
    read_workflow(json.dumps(raw).encode())


@pytest.mark.parametrize("keep", [0, 1, 50, 400, -1])
def test_truncated_json(make, keep):
    text = json.dumps(make.text_to_image()).encode()[:keep]
    with pytest.raises(BadFile, match=r"not JSON|no ComfyUI workflow"):
        read_workflow(text)


@pytest.mark.parametrize(
    "raw", [[], 3, "x", None, {}, {"nodes": 3}, {"a": {"b": 1}}, {"prompt": {}}, {"nodes": None}]
)
def test_json_that_is_no_workflow(raw):
    with pytest.raises(BadFile, match="no ComfyUI workflow"):
        read(raw)


def test_deep_nesting_is_refused_at_once():
    start = time.monotonic()
    for text in (b"[" * 200_000, b'{"nodes":' * 100_000):
        with pytest.raises(BadFile):
            read_workflow(text)
    assert time.monotonic() - start < 5


def test_a_hundred_megabytes_are_not_read(tmp_path):
    path = tmp_path / "big.json"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    start = time.monotonic()
    with pytest.raises(BadFile, match="larger than"):
        read_workflow(path)
    assert time.monotonic() - start < 2


def test_more_nodes_than_any_workflow_has(make):
    nodes = [make.node(number, "Note") for number in range(25_000)]
    with pytest.raises(BadFile, match="more than 20000 nodes"):
        read_workflow(make.graph(*nodes))


def test_subgraphs_that_double_and_double_end(make):
    """A small file that unfolds to millions of nodes."""
    subgraphs = [
        {
            "id": f"level-{number}",
            "nodes": [make.node(each, f"level-{number + 1}") for each in (1, 2, 3, 4)],
            "links": [],
            "inputs": [],
        }
        for number in range(15)
    ]
    raw = make.graph(make.node(1, "level-0"), subgraphs=subgraphs)
    start = time.monotonic()
    with pytest.raises(BadFile, match="more than 20000 nodes"):
        read_workflow(raw)
    assert time.monotonic() - start < 5


def test_a_circle_is_named(make):
    raw = make.text_to_image()
    raw["nodes"][1] = make.node(
        2, "LatentUpscaleBy", ["nearest", 2], [("samples", "LATENT", 3)], ("LATENT",), title="Twice"
    )
    raw["links"].append([9, 3, 0, 2, 0, "LATENT"])
    raw["nodes"][1]["inputs"][0]["link"] = 9
    with pytest.raises(BadFile, match=r"circle at node .*(KSampler|Twice) \(#"):
        read(raw)


def test_a_circle_of_reroutes_is_named(make):
    raw = make.text_to_image()
    raw["nodes"][1] = make.node(2, "Reroute", None, [("", "*", 9)], ("LATENT",))
    raw["links"].append([9, 2, 0, 2, 0, "LATENT"])
    with pytest.raises(BadFile, match=r"circle at node .*#"):
        read(raw)


def test_a_circle_in_a_prompt_is_named(make):
    raw = make.prompt()
    raw["2"] = {"class_type": "LatentUpscaleBy", "inputs": {"samples": ["3", 0], "scale_by": 2}}
    with pytest.raises(BadFile, match="circle"):
        read(raw)


def test_a_link_to_a_node_that_is_not_there(make):
    raw = make.prompt()
    del raw["2"]
    with pytest.raises(BadFile, match=r"node Sampler \(#3\) takes its input from node 2"):
        read(raw)
    ui = make.text_to_image()
    del ui["nodes"][1]
    with pytest.raises(BadFile, match=r"node KSampler \(#3\) takes its input from node 2"):
        read(ui)


@pytest.mark.parametrize(
    "side", ["NaN", "Infinity", "-64", "0", '"wide"', "1e9", "null", "[]", "{}", "true"]
)
def test_sizes_that_no_picture_has(make, side):
    text = json.dumps(make.text_to_image()).replace("1024", side, 1)
    with pytest.raises(BadFile, match=r"node EmptyLatentImage \(#2\) says width"):
        read_workflow(text.encode())


def test_hostile_titles_are_one_plain_line(make):
    raw = make.text_to_image()
    raw["nodes"][2]["title"] = "\x1b[2Jnice\n\r\x00[bold]x[/bold]<script>" + "y" * 500
    (request,) = read_workflow(raw).requests
    title = request.passes[0].node
    assert title.isprintable() and len(title) <= 80
    del raw["nodes"][1]
    with pytest.raises(BadFile) as caught:
        read_workflow(raw)
    assert "\x1b" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "C:\\x.safetensors",
        "a/../../b",
        "..\\..\\x",
        "a/./b",
        "x\n.pt",
        "~/x",
    ],
)
def test_names_stay_below_the_models_folder(make, name):
    raw = make.text_to_image()
    raw["nodes"][0]["widgets_values"] = [name]
    with pytest.raises(BadFile, match=r"node CheckpointLoaderSimple \(#1\)"):
        read(raw)


@pytest.mark.parametrize("folder", ["../x", "/x", "", "a/..", 3, None])
def test_folders_stay_below_the_models_folder(make, folder):
    raw = make.text_to_image()
    entry = {"name": "sd_xl_base_1.0.safetensors", "url": "https://x.org/a", "directory": folder}
    raw["nodes"][0]["properties"] = {"models": [entry]}
    with pytest.raises(BadFile, match="models folder"):
        read(raw)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://x.org/a", "javascript:x", 3, "https://x.org/a b"]
)
def test_only_plain_https_addresses_are_kept(make, url):
    raw = make.text_to_image()
    entry = {"name": "sd_xl_base_1.0.safetensors", "url": url, "directory": "checkpoints"}
    raw["nodes"][0]["properties"] = {"models": [entry]}
    (wanted,) = read_workflow(raw).files
    assert wanted.url is None


@given(st.text(max_size=40))
def test_safe_parts_never_leave(text):
    parts = safe_parts(text)
    assert parts is None or all(
        part not in ("..", ".", "") and "/" not in part and "\\" not in part for part in parts
    )


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        ({"nobody.width": 3}, "no node has that id or title"),
        ({"width": 3}, "nothing asks for it"),
        ({"2.width": float("nan")}, "no number"),
        ({"2.width": 1 << 70}, "no number"),
        ({"2.width": 0}, "whole number from 1"),
        ({"2.width": "wide"}, "whole number from 1"),
        ({"2.width": [1]}, "no number"),
    ],
)
def test_answers_that_fit_nothing(make, answers, match):
    with pytest.raises(BadRequest, match=match):
        read_workflow(make.text_to_image(), answers)


def test_an_answer_for_two_nodes_of_one_title_names_their_ids(make):
    twins = [make.node(each, "LoadImage", ["a.png"], (), ("IMAGE", "MASK")) for each in (8, 9)]
    with pytest.raises(BadRequest, match="8, 9"):
        read_workflow(make.text_to_image(more=twins), {"LoadImage.width": 64})


# --- anything at all

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["-10", -10, -20, "1", 2, "KSampler", "GetNode", "Reroute", [], {}, [1, 2]]),
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


def _places(raw: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    items = (
        raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    )
    for key, value in items:
        found += _places(value, (*here, key))
    return found


def _changed(raw: Any, place: tuple[Any, ...], value: Any, remove: bool) -> None:
    for key in place[:-1]:
        raw = raw[key]
    if remove:
        del raw[place[-1]]
    else:
        raw[place[-1]] = value


def _bases(make) -> list[dict[str, Any]]:
    reroute = make.node(6, "Reroute", None, [("", "*", 6)], ("MODEL",))
    raw = make.text_to_image(more=[reroute], links=[(6, 1, 0, 6, 0, "MODEL")])
    raw["links"][0] = [1, 6, 0, 3, 0, "MODEL"]
    inner = make.node(
        20, "EmptyLatentImage", [512, 512, 1], [("width", "INT", 1, "width")], ("LATENT",)
    )
    holder = make.node(2, "sub", [640], [("w", "INT", None, "w")], ("LATENT",))
    holder["properties"] = {
        "proxyWidgets": [["20", "width"]],
        "models": [{"name": "x", "directory": "vae"}],
    }
    nested = make.text_to_image(latent=holder)
    nested["definitions"] = {
        "subgraphs": [
            {
                "id": "sub",
                "inputs": [{"name": "w", "linkIds": [1]}],
                "nodes": [inner],
                "links": [
                    {
                        "id": 1,
                        "origin_id": -10,
                        "origin_slot": 0,
                        "target_id": 20,
                        "target_slot": 0,
                    },
                    {
                        "id": 2,
                        "origin_id": 20,
                        "origin_slot": 0,
                        "target_id": -20,
                        "target_slot": 0,
                    },
                ],
            }
        ]
    }
    return [raw, nested, make.prompt()]


@QUIET
@given(data=st.data())
def test_a_workflow_with_anything_in_it(make, data):
    raw = copy.deepcopy(data.draw(st.sampled_from(_bases(make))))
    for _ in range(data.draw(st.integers(1, 4))):
        places = _places(raw)
        if not places:
            break
        _changed(
            raw, data.draw(st.sampled_from(places)), data.draw(ANYTHING), data.draw(st.booleans())
        )
    try:
        found = read_workflow(json.dumps(raw).encode())
    except InputError as error:
        assert str(error)
    else:
        for wanted in found.files:
            assert safe_parts(f"{wanted.folder}/{wanted.name}")


@QUIET
@given(st.binary(max_size=300))
def test_bytes(content):
    with pytest.raises(InputError):
        read_workflow(content)


@QUIET
@given(
    st.one_of(
        st.text(max_size=60), st.text("ab0123456789+-*/%()<>=!&|~., ifelsndor'[]{}_\n", max_size=60)
    )
)
def test_expressions_have_a_value_or_none(text):
    try:
        value = evaluate(text, {"a": 5, "b": 2.5}.get)
    except ExpressionError:
        return
    assert value is None or isinstance(value, (bool, int, float, str))


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "2**100000", "'x' * 10**9", "a().b", "__import__('os')", "open('x')", "(" * 500, "1/0", "[1][0]",
     "lambda: 1", "max()", "1 << 10**9", "'a' % 3", "f'{a}'", "json_get('[' * 9, 'a')"],
)  # fmt: skip
def test_expressions_that_are_refused(text):
    with pytest.raises(ExpressionError):
        evaluate(text, {"a": 5}.get)


def test_a_dotted_name_is_only_a_name():
    assert evaluate("a.__class__", lambda name: name) == "a.__class__"


@QUIET
@given(
    content=st.binary(max_size=200),
    head=st.sampled_from([b"\x89PNG\r\n\x1a\n", b"RIFFxxxxWEBP", b"\xff\xd8", b"GIF89a", b""]),
)
def test_pictures_of_anything(tmp_path, content, head):
    path = tmp_path / "x.png"
    path.write_bytes(head + content)
    try:
        width, height = files.picture_size(path)
    except BadFile:
        pass
    else:
        assert width > 0 and height > 0
    with pytest.raises(InputError):
        read_workflow(path)
