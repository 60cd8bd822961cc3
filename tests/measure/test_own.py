"""Recording the reader's own code, in the reader's own process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import cardfit
from cardfit.measure.runner.assemble import filled
from cardfit.records import files
from cardfit.records.models import Record
from cardfit.records.verbs import listed


@pytest.fixture(scope="module")
def pipe(folder: Path) -> Any:
    """A pipeline as somebody's script has it."""
    from diffusers import StableDiffusionPipeline

    found = StableDiffusionPipeline.from_pretrained(folder, use_safetensors=True)
    found.set_progress_bar_config(disable=True)
    return found


def test_every_call_is_a_repetition(pipe: Any, data: Path) -> None:
    before = {
        name: dict(part.__dict__)
        for name, part in pipe.components.items()
        if hasattr(part, "__dict__")
    }
    with cardfit.record(pipe) as seen:
        for _ in range(2):
            pipe("a cat", width=64, height=64, num_inference_steps=2, output_type="pt")
        pipe.vae.decode(torch.zeros(1, 4, 8, 8))
    record = seen.record
    assert record.ok and [each.phase for each in record.repetitions] == ["own"] * 3
    assert [(s.name, s.calls) for s in record.repetitions[0].stages] == [
        ("encode_prompt", 2), ("denoise", 3), ("decode", 1),
    ]  # fmt: skip
    assert len(record.repetitions[0].step_seconds) == 2
    assert [s.component for s in record.repetitions[2].stages] == ["vae"]
    assert record.weights.name == "StableDiffusionPipeline" and record.model is None
    assert record.latents == ("latents-000.safetensors",)
    assert record.repetitions[0].figures["rss_peak_bytes"] is not None
    assert files.read(files.records_folder() / record.id) == record == listed()[0]
    after = {
        name: dict(part.__dict__)
        for name, part in pipe.components.items()
        if hasattr(part, "__dict__")
    }
    assert {n: set(d) for n, d in after.items()} == {n: set(d) for n, d in before.items()}


def test_an_error_is_recorded_and_goes_on_its_way(pipe: Any, data: Path) -> None:
    with pytest.raises(RuntimeError, match="you tried to allocate"), cardfit.record(pipe) as seen:  # noqa: PT012
        pipe("a cat", width=64, height=64, num_inference_steps=1, output_type="pt")
        pipe.vae.decode(torch.zeros(1, 4, 8, 8).expand(1 << 40, 4, 8, 8))
    outcome = seen.record.outcome
    assert outcome.kind == "host_oom" and outcome.stage == "encode_condition"
    assert outcome.tried_bytes is not None and outcome.tried_bytes > 1 << 40
    assert outcome.op is not None and outcome.op.startswith("vae.")
    assert len(seen.record.repetitions) == 1
    (kept,) = files.each()
    assert isinstance(kept, Record) and kept.outcome == outcome


def test_filling_keeps_tied_weights_tied() -> None:
    one, two = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)
    two.weight = one.weight
    both = filled(torch.nn.Sequential(one, two), torch.device("cpu"), 0)
    assert both[0].weight is both[1].weight  # type: ignore[index]
    assert both[0].weight.abs().sum() > 0  # type: ignore[index]
