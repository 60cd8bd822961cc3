"""How often a stage calls what: guidance batched or twice, two experts, and who is resident when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cardfit.predict.memory import estimate
from cardfit.request import Settings
from cardfit.trace.stream import Op, Trace

Traced = Callable[..., Trace]


def calls(trace: Trace) -> dict[str, int]:
    """Calls of each component over the whole run."""
    found: dict[str, int] = {}
    for segment in trace.timeline:
        for event in segment.events:
            if event[0] == Op.ON:
                name = trace.components[event[1]].name
                found[name] = found.get(name, 0) + segment.repeat
    return found


def flop(trace: Trace, component: str) -> float:
    """FLOPs of one call of ``component``, of the largest where there are several."""
    number = [each.name for each in trace.components].index(component)
    return max(sum(w.flop for w in s.work) for s in trace.streams if s.component == number)


def test_guidance_is_one_batched_call_a_step(traced: Traced) -> None:
    trace = traced("stable-diffusion-1.5", width=128, height=128, num_inference_steps=2)
    alone = traced(
        "stable-diffusion-1.5", width=128, height=128, num_inference_steps=2, guidance_scale=1.0
    )
    plms = 1  # the scheduler of SD 1.5 takes one step more
    assert calls(trace)["unet"] == calls(alone)["unet"] == 2 + plms
    assert flop(trace, "unet") == pytest.approx(2 * flop(alone, "unet"), rel=0.01)


def test_both_experts_run_on_their_side_of_the_boundary(traced: Traced) -> None:
    trace = traced("wan2.2-t2v-a14b", width=160, height=96, num_frames=5, num_inference_steps=10)
    found = calls(trace)
    # guidance is two forwards a step; with the shifted schedule the high-noise expert takes the first steps
    assert found["transformer"] + found["transformer_2"] == 2 * 10
    assert found["transformer"] > 0 and found["transformer_2"] > 0
    assert found["transformer"] % 2 == found["transformer_2"] % 2 == 0
    order = [
        trace.components[event[1]].name
        for segment in trace.timeline
        for event in segment.events
        if event[0] == Op.ON and trace.components[event[1]].name.startswith("transformer")
    ]
    assert order == sorted(order)  # the boundary is crossed once


def test_experts_are_both_resident_unless_they_are_offloaded(traced: Traced) -> None:
    trace = traced("wan2.2-t2v-a14b", width=160, height=96, num_frames=5, num_inference_steps=10)
    first, second = trace.component("transformer"), trace.component("transformer_2")
    held = {
        offload: next(
            row.weights_bytes
            for row in estimate(trace, Settings(offload=offload)).stages
            if row.name == "denoise"
        )
        for offload in ("none", "model")
    }
    both = first.weights_bytes + second.weights_bytes
    assert held["none"] >= both
    assert first.weights_bytes <= held["model"] < 1.2 * first.weights_bytes


def test_a_distilled_model_calls_once_a_step(traced: Traced) -> None:
    trace = traced(
        "flux.1-schnell", width=128, height=128, num_inference_steps=2, prompt_embeds=True
    )
    assert calls(trace) == {"transformer": 2, "vae": 1}
