"""The normal form: what the editor's graphs and the server's prompts come to."""

from __future__ import annotations

import copy

import pytest

from cardfit.comfy.graph import graph_of
from cardfit.comfy.nodes import known
from cardfit.comfy.reader import read_workflow
from cardfit.errors import BadFile


def one(raw, answers=None):
    (request,) = read_workflow(raw, answers).requests
    return request


def size(request):
    return (request.width, request.height, request.num_frames, request.num_inference_steps)


def test_both_formats_say_the_same(make):
    ui, api = one(make.text_to_image()), one(make.prompt())
    assert size(ui) == size(api) == (1024, 768, 1, 25)
    assert ui.model == api.model == "sdxl-base"
    assert ui.guidance_scale == api.guidance_scale == 6.5
    assert ui.seed == api.seed == 7
    assert ui.origins["width"] == ("EmptyLatentImage.width",)
    assert api.passes[0].node == "Sampler"


def test_links_as_objects_are_links(make):
    raw = make.text_to_image()
    keys = ("id", "origin_id", "origin_slot", "target_id", "target_slot", "type")
    raw["links"] = [dict(zip(keys, link, strict=True)) for link in raw["links"]]
    raw["version"] = 1
    assert size(one(raw)) == (1024, 768, 1, 25)


def test_widgets_by_name_are_values(make):
    raw = make.text_to_image()
    raw["nodes"][1]["widgets_values"] = {"width": 640, "height": 512, "batch_size": 3}
    found = one(raw)
    assert (found.width, found.height, found.batch) == (640, 512, 3)


def test_a_missing_control_word_moves_nothing(make):
    raw = make.text_to_image()
    raw["nodes"][2]["widgets_values"] = [7, 31, 6.5, "euler", "normal", 1]
    assert one(raw).num_inference_steps == 31


def test_a_linked_widget_is_never_read(make):
    latent = make.node(
        2, "EmptyLatentImage", [512, 512, 1], [("width", "INT", 6, "width")], ("LATENT",)
    )
    number = make.node(6, "PrimitiveInt", [1536, "fixed"], (), ("INT",), title="Width")
    found = one(make.text_to_image(latent=latent, more=[number], links=[(6, 6, 0, 2, 0, "INT")]))
    assert found.width == 1536
    assert found.origins["width"] == ("Width.value",)


@pytest.mark.parametrize(("on", "steps"), [(True, 4), (False, 20)])
def test_a_switch_chooses(make, on, steps):
    sampler = make.node(
        3,
        "KSampler",
        [7, "fixed", 99, 6.5, "euler", "normal", 1],
        [("model", "MODEL", 1), ("latent_image", "LATENT", 2), ("steps", "INT", 6, "steps")],
        ("LATENT",),
    )
    more = [
        make.node(6, "PrimitiveInt", [20], (), ("INT",)),
        make.node(7, "PrimitiveInt", [4], (), ("INT",)),
        make.node(
            8,
            "ComfySwitchNode",
            [on],
            [("on_false", "INT", 7), ("on_true", "INT", 8), ("switch", "BOOLEAN", None, "switch")],
            ("INT",),
        ),
    ]
    links = [(6, 8, 0, 3, 2, "INT"), (7, 6, 0, 8, 0, "INT"), (8, 7, 0, 8, 1, "INT")]
    assert (
        one(make.text_to_image(sampler=sampler, more=more, links=links)).num_inference_steps
        == steps
    )


def _between(make, middle):
    """The model comes through ``middle`` (id 6) instead of straight from the loader."""
    raw = make.text_to_image(more=[middle], links=[(6, 1, 0, 6, 0, "MODEL")])
    raw["links"][0] = [1, 6, 0, 3, 0, "MODEL"]
    return raw


def test_reroutes_and_bypassed_nodes_hand_on(make):
    reroute = make.node(6, "Reroute", None, [("", "*", 6)], ("MODEL",))
    lora = make.node(
        6, "LoraLoaderModelOnly", ["a.safetensors", 1], [("model", "MODEL", 6)], ("MODEL",)
    )
    assert one(_between(make, reroute)).model == "sdxl-base"
    assert one(_between(make, lora)).passes[0].loras == ("a.safetensors",)
    bypassed = one(_between(make, {**lora, "mode": 4}))
    assert (bypassed.model, bypassed.passes[0].loras) == ("sdxl-base", ())
    muted = one(_between(make, {**lora, "mode": 2}))
    assert muted.model is None


def test_an_unknown_patch_of_a_model_is_listed_and_lets_the_model_through(make):
    patch = make.node(6, "SomebodysPatch", [1, 2], [("model", "MODEL", 6)], ("MODEL",))
    found = read_workflow(_between(make, patch))
    assert found.unknown_nodes == ("SomebodysPatch",)
    assert found.requests[0].model == "sdxl-base"


def test_an_unknown_source_of_a_size_is_asked_for_by_title(make):
    latent = make.node(2, "SomebodysLatent", [5], (), ("LATENT",), title="My latent")
    found = read_workflow(make.text_to_image(latent=latent))
    assert {(each.node, each.input) for each in found.missing} >= {("My latent", "width")}
    answers = {"My latent.width": 640, "2.height": 512, "frames": 1, "batch": 1}
    again = read_workflow(make.text_to_image(latent=latent), answers)
    assert not again.missing
    assert size(again.requests[0]) == (640, 512, 1, 25)


def test_set_and_get_nodes_are_a_link(make):
    setter = make.node(6, "SetNode", ["latent"], [("LATENT", "LATENT", 6)], ("LATENT",))
    getter = make.node(7, "GetNode", ["latent"], (), ("LATENT",))
    raw = make.text_to_image(more=[setter, getter], links=[(6, 2, 0, 6, 0, "LATENT")])
    raw["links"][1] = [2, 7, 0, 3, 1, "LATENT"]
    assert size(one(raw)) == (1024, 768, 1, 25)


def _in_subgraph(make, widgets, **properties):
    """The latent inside a subgraph whose inputs ``w`` and ``h`` feed its size."""
    inner = make.node(
        20,
        "EmptyLatentImage",
        [512, 512, 1],
        [("width", "INT", 1, "width"), ("height", "INT", 2, "height")],
        ("LATENT",),
    )
    links = [
        {"id": 1, "origin_id": -10, "origin_slot": 0, "target_id": 20, "target_slot": 0},
        {"id": 2, "origin_id": -10, "origin_slot": 1, "target_id": 20, "target_slot": 1},
        {"id": 3, "origin_id": 20, "origin_slot": 0, "target_id": -20, "target_slot": 0},
    ]
    subgraph = {
        "id": "latent-in-here",
        "name": "Latent",
        "inputs": [{"name": "w", "linkIds": [1]}, {"name": "h", "linkIds": [2]}],
        "outputs": [{"name": "LATENT", "linkIds": [3]}],
        "nodes": [inner],
        "links": links,
    }
    holder = make.node(
        2,
        "latent-in-here",
        widgets,
        [("w", "INT", None, "w"), ("h", "INT", None, "h")],
        ("LATENT",),
    )
    holder["properties"] = properties
    raw = make.text_to_image(latent=holder)
    raw["definitions"] = {"subgraphs": [subgraph]}
    return raw


@pytest.mark.parametrize(
    ("widgets", "properties", "expected"),
    [
        ([], {}, (512, 512)),  # nothing outside: the inner widgets hold
        ([896, 1152], {}, (896, 1152)),  # the outside's own values, in the order of its inputs
        ([896, 1152], {"proxyWidgets": [["20", "width"], ["20", "height"]]}, (896, 1152)),
        ([1152, 896], {"proxyWidgets": [["-1", "h"], ["-1", "w"]]}, (896, 1152)),
        ([], {"proxyWidgets": [["20", "width"], ["20", "height"]]}, (512, 512)),
    ],
)
def test_promoted_widgets(make, widgets, properties, expected):
    found = one(_in_subgraph(make, widgets, **properties))
    assert (found.width, found.height) == expected


def test_a_link_into_a_subgraph_wins_over_its_widgets(make):
    raw = _in_subgraph(make, [896, 1152])
    raw["nodes"].append(make.node(9, "PrimitiveInt", [1536], (), ("INT",)))
    raw["links"].append([9, 9, 0, 2, 0, "INT"])
    raw["nodes"][1]["inputs"][0]["link"] = 9
    assert one(raw).width == 1536


def test_subgraphs_in_subgraphs(make):
    raw = _in_subgraph(make, [])
    inner = raw["definitions"]["subgraphs"][0]
    outer = copy.deepcopy(inner)
    outer["id"] = "around-it"
    outer["nodes"] = [
        make.node(
            30, "latent-in-here", [], [("w", "INT", 1, "w"), ("h", "INT", 2, "h")], ("LATENT",)
        )
    ]
    for link in outer["links"]:
        link.update({key: 30 for key in ("origin_id", "target_id") if link[key] == 20})
    raw["definitions"]["subgraphs"].append(outer)
    raw["nodes"][1]["type"] = "around-it"
    raw["nodes"][1]["widgets_values"] = [704, 576]
    assert (one(raw).width, one(raw).height) == (704, 576)
    assert "2:30:20" in graph_of(raw, known(), "x").nodes


def test_a_subgraph_in_itself_is_refused(make):
    raw = _in_subgraph(make, [])
    raw["definitions"]["subgraphs"][0]["nodes"].append(make.node(21, "latent-in-here"))
    with pytest.raises(BadFile, match="nested deeper"):
        read_workflow(raw)


def test_two_passes_of_one_request(make):
    more = [
        make.node(6, "LatentUpscaleBy", ["nearest", 1.5], [("samples", "LATENT", 6)], ("LATENT",)),
        make.node(
            7,
            "KSampler",
            [7, "fixed", 10, 6.5, "euler", "normal", 0.5],
            [("model", "MODEL", 7), ("latent_image", "LATENT", 8)],
            ("LATENT",),
        ),
    ]
    links = [(6, 3, 0, 6, 0, "LATENT"), (7, 1, 0, 7, 0, "MODEL"), (8, 6, 0, 7, 1, "LATENT")]
    raw = make.text_to_image(more=more, links=links)
    raw["links"][2] = [3, 7, 0, 4, 0, "LATENT"]
    found = one(raw)
    assert [(p.width, p.height, p.steps) for p in found.passes] == [
        (1024, 768, 25),
        (1536, 1152, 10),
    ]
    assert size(found) == (1536, 1152, 1, 25)
    assert found.decode.id == "4"


def test_the_branch_that_a_switch_does_not_choose_does_not_run(make):
    other = make.text_to_image()["nodes"][1:4]
    for each, number in zip(other, (12, 13, 14), strict=True):
        each["id"] = number
    other[1]["inputs"] = [
        {"name": "model", "type": "MODEL", "link": 11},
        {"name": "latent_image", "type": "LATENT", "link": 12},
    ]
    other[2]["inputs"] = [{"name": "samples", "type": "LATENT", "link": 13}]
    switch = make.node(
        15,
        "ComfySwitchNode",
        [False],
        [("on_false", "IMAGE", 15), ("on_true", "IMAGE", 14)],
        ("IMAGE",),
    )
    links = [
        (11, 1, 0, 13, 0, "MODEL"),
        (12, 12, 0, 13, 1, "LATENT"),
        (13, 13, 0, 14, 0, "LATENT"),
        (14, 14, 0, 15, 1, "IMAGE"),
        (15, 4, 0, 15, 0, "IMAGE"),
    ]
    raw = make.text_to_image(more=[*other, switch], links=links)
    raw["links"][4] = [5, 15, 0, 5, 0, "IMAGE"]
    assert [each.id for each in one(raw).passes] == ["3"]


def test_a_drowned_picture_is_no_pass(make):
    """A second model draws from pure noise over the first one's picture: two requests."""
    more = [
        make.node(6, "VAEEncode", [], [("pixels", "IMAGE", 6), ("vae", "VAE", 9)], ("LATENT",)),
        make.node(
            7,
            "KSampler",
            [7, "fixed", 10, 6.5, "euler", "normal", 1],
            [("model", "MODEL", 7), ("latent_image", "LATENT", 8)],
            ("LATENT",),
        ),
        make.node(8, "VAEDecode", [], [("samples", "LATENT", 10)], ("IMAGE",)),
    ]
    links = [
        (6, 4, 0, 6, 0, "IMAGE"),
        (7, 1, 0, 7, 0, "MODEL"),
        (8, 6, 0, 7, 1, "LATENT"),
        (9, 1, 2, 6, 1, "VAE"),
        (10, 7, 0, 8, 0, "LATENT"),
    ]
    raw = make.text_to_image(more=more, links=links)
    raw["links"][4] = [5, 8, 0, 5, 0, "IMAGE"]
    assert len(read_workflow(raw).requests) == 2
    more[1]["widgets_values"][6] = 0.4
    assert len(one(raw).passes) == 2
