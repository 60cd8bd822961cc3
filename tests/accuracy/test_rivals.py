"""Rival rules by hand: the worked examples that their authors or readers printed."""

from __future__ import annotations

import pytest

from cardfit.accuracy.rebuild import rebuild
from cardfit.accuracy.rivals import (
    decode_bytes,
    denoise_bytes,
    figures,
    invokeai_decode_bytes,
    weights_only_bytes,
)
from cardfit.predict.estimate import MemoryEstimate, StageMemory
from cardfit.trace.stream import Component, Module
from cardfit.units import GIB


def component(name, kind, size):
    return Component(name, kind, "bfloat16", (Module("", kind, (("weight", size, "bfloat16"),)),))


class Traced:
    components = (
        component("transformer", "FluxTransformer2DModel", 20 * GIB),
        component("text_encoder", "X", 8 * GIB),
    )


def stage(name, weights):
    return StageMemory(name, "x", 1, weights, 0, weights, weights, 0, 0, "traced", "")


def estimated(denoise=28 * GIB, decode=28 * GIB):
    stages = (stage("denoise", denoise), stage("decode", decode))
    return MemoryEstimate(stages, "decode", 0, 0, 0, 0, 0, None, ())


VIDEO = {"num_frames": "81", "width": "832", "height": "480"}


@pytest.mark.parametrize(
    ("cells", "gib"),
    [
        # printed beside the formulas: FLUX.1 1024 px, Wan 14B 480p and 720p, HunyuanVideo 720p, LTX 2B
        ({}, 0.99),
        ({**VIDEO, "model": "Wan2.1-T2V-14B"}, 5.9),
        ({**VIDEO, "model": "Wan2.1-T2V-14B", "width": "1280", "height": "720"}, 13.6),
        ({"model": "HunyuanVideo", "width": "1280", "height": "720", "num_frames": "129"}, 16.7),
        ({"model": "LTX-Video", "width": "704", "height": "480", "num_frames": "161"}, 0.74),
    ],
)
def test_comfyui_denoisers(made, cells, gib):
    rebuilt = rebuild(made(**cells))
    kinds = {
        "Wan2.1-T2V-14B": "WanTransformer3DModel",
        "HunyuanVideo": "HunyuanVideoTransformer3DModel",
        "LTX-Video": "LTXVideoTransformer3DModel",
    }

    kind = kinds.get(cells.get("model"), "FluxTransformer2DModel")

    class Made:
        components = (component("transformer", kind, 1),)

    assert denoise_bytes(rebuilt, Made) / GIB == pytest.approx(gib, rel=0.02)


@pytest.mark.parametrize(
    ("cells", "gib"),
    [
        # KL 1024 px, Wan 2.1 480p and 720p, LTX 768x512x121
        ({"model": "SDXL VAE"}, 4.3),
        ({**VIDEO, "model": "Wan2.1-T2V-14B"}, 5.2),
        ({**VIDEO, "model": "Wan2.1-T2V-14B", "width": "1280", "height": "720"}, 12.0),
        ({"model": "LTX-Video", "width": "768", "height": "512", "num_frames": "121"}, 7.0),
    ],
)
def test_comfyui_decoders(made, cells, gib):
    rebuilt = rebuild(made(**cells, scope="decode_only"))
    assert decode_bytes(rebuilt) / GIB == pytest.approx(gib, rel=0.02)


@pytest.mark.parametrize(("side", "gib"), [("512", 1.42), ("1024", 5.66), ("2048", 22.66)])
def test_invokeai_qwen_image(made, side, gib):
    rebuilt = rebuild(made(model="Qwen-Image VAE", width=side, height=side, scope="decode_only"))
    assert invokeai_decode_bytes(rebuilt) / GIB == pytest.approx(gib, abs=0.01)
    assert invokeai_decode_bytes(rebuild(made(model="SDXL VAE", scope="decode_only"))) is None


def test_tiles_are_not_what_the_rules_speak_of(made):
    assert decode_bytes(rebuild(made(vae_tiling="yes"))) is None


def test_a_whole_run(made):
    rebuilt = rebuild(made())
    said = figures(rebuilt, Traced, estimated())
    assert said["weights_only"] == weights_only_bytes(Traced, rebuilt.settings) == 28 * GIB
    assert said["rule"] == round(1.15 * 28 * GIB)
    assert said["comfyui"] == 28 * GIB + decode_bytes(rebuilt)
    assert "invokeai" not in said


def test_a_denoiser_alone(made):
    rebuilt = rebuild(made(scope="denoise_only"))
    said = figures(rebuilt, Traced, estimated())
    assert said["weights_only"] == 20 * GIB
    assert said["comfyui"] == 20 * GIB + denoise_bytes(rebuilt, Traced)


def test_weights_say_nothing_of_a_decode(made):
    said = figures(rebuild(made(model="Qwen-Image VAE", scope="decode_only")), Traced, estimated())
    assert set(said) == {"comfyui", "invokeai"}
