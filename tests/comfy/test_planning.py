"""Plans of workflows: passes, seconds, cures; over a planner on paper and over the real one."""

from __future__ import annotations

import importlib.util
import json
import struct
from pathlib import Path

import pytest

from cardfit import api
from cardfit.comfy.planning import groups_of, plan_workflow, request_of
from cardfit.comfy.reader import read_workflow
from cardfit.errors import BadRequest, UnknownCard
from cardfit.library import load
from cardfit.plan.answer import Money, Seconds
from cardfit.request import ControlNet

_here = Path(__file__).parent
_spec = importlib.util.spec_from_file_location(
    "make_answer", _here.parent / "report" / "make_answer.py"
)
make_answer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_answer)
_spec = importlib.util.spec_from_file_location("make", _here / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)
_spec = importlib.util.spec_from_file_location("templates", _here / "templates.py")
templates = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(templates)


@pytest.fixture
def planner():
    """A planner whose seconds are 100 + steps x frames x megapixels; it collects what it was asked."""
    asked = []

    def plan(request, settings, **more):
        asked.append((request, settings, more))
        work = (
            request.num_inference_steps
            * (request.num_frames or 1)
            * request.width
            * request.height
            / 1e6
        )
        seconds = Seconds(low=90 + work, likely=100 + work, high=110 + work)
        found = make_answer.answer()
        rows = [
            row.model_copy(
                update={
                    "seconds": seconds,
                    "cost_per_output": Money(amount=seconds.likely, currency="USD"),
                }
            )
            for row in found.cards
        ]
        return found.model_copy(update={"cards": tuple(rows)})

    plan.asked = asked
    return plan


def test_two_experts_are_planned_once_with_all_their_steps(planner):
    found = plan_workflow(
        read_workflow(templates.path("video_wan2_2_14B_t2v")), planner, cards=["l4"]
    )
    ((request, settings, more),) = planner.asked
    assert request.model_dump(exclude_unset=True) == {
        "model": "wan2.2-t2v-a14b",
        "task": "text-to-video",
        "width": 640,
        "height": 640,
        "num_frames": 81,
        "fps": 16,
        "batch": 1,
        "num_inference_steps": 20,
        "guidance_scale": 3.5,
        "runtime": "comfyui",
    }
    assert settings.quantization == dict.fromkeys(
        ("transformer", "transformer_2", "text_encoder"), "fp8-layerwise"
    )
    assert more["workflow"].fp8_components == ("transformer", "transformer_2", "text_encoder")
    assert more["cards"] == ["l4"]
    (planned,) = found.plans
    assert [note.code for note in planned.notes] == ["comfy-save-latent"]
    assert "node 128:87" in planned.notes[0].text


def test_passes_add_their_steps_at_their_size(planner):
    reading = read_workflow(templates.path("video_ltx2_t2v"))
    base, refined = (640, 352, 121, 20), (1280, 704, 121, 3)
    (planned,) = plan_workflow(reading, planner).plans
    first = planner.asked[0][0]
    assert (first.width, first.height, first.num_inference_steps) == (1280, 704, 3)
    assert {note.code for note in planned.notes} >= {
        "comfy-side",
        "comfy-passes",
        "comfy-loras-unread",
    }
    expected = 100 + sum(w * h * frames * steps / 1e6 for w, h, frames, steps in (base, refined))
    for row in planned.answer.cards:
        assert row.seconds.likely == pytest.approx(expected)
        assert row.cost_per_output.amount == pytest.approx(expected)
        assert row.seconds.low < row.seconds.likely < row.seconds.high


def test_like_passes_are_counted_together():
    found = read_workflow(templates.path("video_wan2_2_14B_s2v")).requests[0]
    (group,) = groups_of(found)
    assert (group.width, group.num_frames, group.steps, group.times) == (640, 77, 4, 3)


def test_a_model_that_is_not_known_is_said_and_stops_nothing(planner):
    found = plan_workflow(read_workflow(templates.path("video_wan2_2_14B_s2v")), planner)
    assert not planner.asked
    assert "wan2.2_s2v_14B_fp8_scaled.safetensors" in found.plans[0].why.text


def test_an_open_request_is_not_planned(planner):
    found = plan_workflow(read_workflow(templates.path("image_qwen_image_edit")), planner)
    assert not planner.asked and found.plans[0].why.code == "comfy-incomplete"


def test_what_the_planner_refuses_is_said_and_what_the_caller_asked_wrongly_is_raised(make):
    reading = read_workflow(make.text_to_image())

    def refuses(error):
        def plan(*args, **more):
            raise error

        return plan

    refused = BadRequest("comfy-answer-form", answer="x")
    (planned,) = plan_workflow(reading, refuses(refused)).plans
    assert planned.answer is None and str(refused) in planned.why.text
    with pytest.raises(UnknownCard):
        plan_workflow(reading, api.plan, cards=["no-such-card"])


@pytest.mark.parametrize(("cfg", "expected"), [(1, 0), (4, 3)])
def test_guidance_that_is_off_at_zero(cfg, expected):
    """diffusers' Z-Image adds a scale times the difference, ComfyUI's cfg 1 is none."""
    reading = read_workflow(templates.path("image_z_image_turbo"), {"57:3.cfg": cfg})
    request, _ = request_of(reading.requests[0], load("z-image-turbo"))
    assert request.guidance_scale == expected


def test_the_real_planner_places_it_as_comfyui_does():
    reading = read_workflow(templates.path("image_z_image_turbo"))
    (planned,) = plan_workflow(
        reading, api.plan, cards=["rtx-4090", "rtx-3060-12gb", "mi300x"]
    ).plans
    rows = {row.card: row for row in planned.answer.cards}
    assert (rows["rtx-4090"].verdict, rows["rtx-4090"].price_of_it) == ("fits", ())
    small = rows["rtx-3060-12gb"]
    assert (small.verdict, small.grade) == ("pages", "amber")
    assert small.near_miss.code == "comfy-cure-file" and "fp8" in small.near_miss.text
    assert rows["mi300x"].verdict == "unknown"
    assert small.seconds.likely > rows["rtx-4090"].seconds.likely
    for row in (small, rows["rtx-4090"]):
        assert row.headroom_bytes == row.usable_bytes - row.peak_reserved_bytes >= 0
        assert row.seconds.low <= row.seconds.likely <= row.seconds.high
    codes = [note.code for note in planned.answer.notes]
    assert "comfy-rules" in codes and "plan-comfyui" not in codes


def test_the_plain_plan_takes_the_runtime_too():
    from cardfit.request import Request, Settings

    request = Request(model="z-image-turbo", runtime="comfyui", guidance_scale=0)
    (row,) = api.plan(request, cards=["rtx-3060-12gb"]).cards
    assert row.verdict == "pages"
    fewer = Settings(quantization={"transformer": "fp8-layerwise", "text_encoder": "fp8-layerwise"})
    (row,) = api.plan(request, fewer, cards=["rtx-3060-12gb"]).cards
    assert row.verdict == "fits"
    (row,) = api.plan(request, cards=["rtx-4090"], ram_bytes=4 << 30).cards
    assert (row.verdict, row.why.code) == ("does_not_fit", "comfy-over-host")


# --- what template authors measured (benchmarks/data/comfy_measured.csv), as far as the shipped traces go


@pytest.mark.parametrize(
    ("template", "answers", "vram_percent", "seconds"),
    [
        ("image_qwen_image", {}, 86, 71),
        ("image_qwen_image", {"76:86.value": True}, 86, 34),
        ("video_wan2_2_14B_t2v", {}, 84, 513),
        ("video_wan2_2_14B_t2v", {"128:129.value": True}, 89, 71),
    ],
)
def test_measured_by_template_authors(template, answers, vram_percent, seconds):
    reading = read_workflow(templates.path(template), answers)
    (planned,) = plan_workflow(reading, api.plan, cards=["rtx-4090-d"]).plans
    (row,) = planned.answer.cards
    assert row.verdict == "fits"
    assert row.device_bytes == pytest.approx(vram_percent / 100 * row.memory_bytes, rel=0.3)
    assert row.seconds.likely == pytest.approx(seconds, rel=0.3)


def controlled(path, file, checkpoint="sd_xl_base_1.0.safetensors", *, lora=None):
    """SDXL with a ControlNet, and a LoRA where one is named."""
    text = make.node(10, "CLIPTextEncode", ["a cat"], [("clip", "CLIP", 10)], ("CONDITIONING",))
    net = make.node(11, "ControlNetLoader", [file], (), ("CONTROL_NET",))
    applied = [("positive", "CONDITIONING", 11), ("control_net", "CONTROL_NET", 12)]
    apply = make.node(
        12, "ControlNetApplyAdvanced", [1, 0, 1], applied, ("CONDITIONING", "CONDITIONING")
    )
    inputs = [
        ("model", "MODEL", 1),
        ("positive", "CONDITIONING", 13),
        ("latent_image", "LATENT", 2),
    ]
    sampler = make.node(
        3, "KSampler", [7, "fixed", 25, 6.5, "euler", "normal", 1], inputs, ("LATENT",)
    )
    loader = make.node(1, "CheckpointLoaderSimple", [checkpoint], (), ("MODEL", "CLIP", "VAE"))
    links = [
        (10, 1, 1, 10, 0, "CLIP"),
        (11, 10, 0, 12, 0, "CONDITIONING"),
        (12, 11, 0, 12, 1, "CONTROL_NET"),
        (13, 12, 0, 3, 1, "CONDITIONING"),
        (2, 2, 0, 3, 2, "LATENT"),
    ]
    more = [text, net, apply]
    if lora is not None:
        model = [("model", "MODEL", 20)]
        more.append(make.node(20, "LoraLoaderModelOnly", [lora, 1.0], model, ("MODEL",)))
        links += [(20, 1, 0, 20, 0, "MODEL"), (1, 20, 0, 3, 0, "MODEL")]
    found = make.text_to_image(sampler=sampler, loader=loader, more=more, links=links)
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def test_a_controlnet_beside_the_sampler_is_asked_for(planner, tmp_path):
    file = controlled(tmp_path / "w.json", "controlnet-canny-sdxl-1.0.safetensors")
    (planned,) = plan_workflow(read_workflow(file), planner).plans
    ((request, _, _),) = planner.asked
    assert request.controlnets == (ControlNet(),)
    note = next(note for note in planned.notes if note.code == "comfy-controlnets")
    assert "controlnet-canny-sdxl-1.0.safetensors" in note.text


def test_a_controlnet_is_known_by_the_name_of_its_repository(planner, tmp_path):
    name = "controlnet_union_sdxl_1.0.safetensors"
    file = controlled(tmp_path / "w.json", name)
    plan_workflow(read_workflow(file), planner)
    assert planner.asked[0][0].controlnets == (ControlNet(model="union"),)


def test_a_lora_takes_nothing_of_the_card(planner, tmp_path):
    lora = tmp_path / "loras" / "a.safetensors"
    lora.parent.mkdir()
    header = json.dumps(
        {"x.lora_A.weight": {"dtype": "F16", "shape": [8, 64], "data_offsets": [0, 1024]}}
    )
    lora.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(1024))
    file = controlled(tmp_path / "w.json", "x.safetensors", lora="a.safetensors")
    (planned,) = plan_workflow(read_workflow(file, models=tmp_path), planner).plans
    assert "1.0 KiB of factors stay in host RAM" in next(
        note.text for note in planned.notes if note.code == "comfy-loras"
    )
    assert planner.asked[0][0].loras == ()


def test_a_controlnet_raises_what_lies_beside_a_step(tmp_path):
    plain = controlled(tmp_path / "a.json", "None")
    with_net = controlled(tmp_path / "b.json", "canny.safetensors")
    answers = [
        plan_workflow(read_workflow(file), api.plan, cards=["rtx-4090"]).plans[0].answer
        for file in (plain, with_net)
    ]
    denoise = [
        max(stage.weights_bytes for stage in answer.stages if stage.name == "denoise")
        for answer in answers
    ]
    more, net = denoise[1] - denoise[0], 1_251_014_160 * 2
    assert net <= more <= 1.05 * net  # blocks of the allocator, which are not always split
