"""The verb: what ran is read from the text or given, and a planner that cannot answer never hides the cause."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import cardfit
from cardfit.errors import BadRequest, DryRunFailed, MissingExtra, UnknownCard
from cardfit.report import autopsy as page
from cardfit.report.style import Style
from cardfit.units import GIB


def _load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = Path(__file__)
t = _load("texts", HERE.with_name("texts.py"))
paper = _load("paper", HERE.parents[1] / "plan" / "conftest.py")
CALL = (
    'pipe = WanPipeline.from_pretrained("Wan-AI/Wan2.1-T2V-14B-Diffusers", torch_dtype=torch.bfloat16)\n'
    'pipe.to("cuda")\nvideo = pipe(prompt, width=832, height=480, num_frames=81)\n'
)
OOM = "100%|##| 50/50 [10:00<00:00, 12.00s/it]\n" + t.new(
    "2.00 GiB", "44.42 GiB", "400.00 MiB", "44.00 GiB", "43.00 GiB", "500.00 MiB"
)


@pytest.fixture(autouse=True)
def on_paper(monkeypatch):
    """37 GiB of weights, 17 GiB for the decode; what is returned collects the settings that were traced."""
    traced = []
    monkeypatch.setattr("cardfit.api._estimates", lambda *given: paper.estimates(traced))
    return traced


def fails_with(monkeypatch, error):
    def estimates(*given):
        raise error

    monkeypatch.setattr("cardfit.api._estimates", estimates)


def test_a_pasted_call_is_enough_for_new_peaks(on_paper):
    found = cardfit.autopsy(CALL + OOM)
    assert (found.request.model, found.request.width, found.request.num_frames) == (
        "wan2.1-t2v-14b",
        832,
        81,
    )
    assert found.settings.offload == "none" and found.settings.dtype == {"*": "bfloat16"}
    assert found.as_run.reserved_bytes == 54 * GIB
    assert found.card in {
        "a40",
        "l40",
        "l40s",
        "rtx-a6000",
    }  # 44.4 GiB, as CUDA counts 48 GB with ECC
    peaks = {cure.code: cure.predicted.reserved_bytes for cure in found.cures if cure.predicted}
    assert peaks["model_offload"] == 34 * GIB
    codes = [note.code for note in found.notes]
    assert "autopsy-request-read" in codes and "autopsy-card-assumed" in codes


def test_what_is_given_goes_on_top_of_the_text():
    request = cardfit.Request(model="wan2.1-t2v-1.3b", num_frames=33)
    found = cardfit.autopsy(CALL + OOM, request, cardfit.Settings(offload="model"), card="a40")
    assert (found.request.model, found.request.num_frames) == ("wan2.1-t2v-1.3b", 33)
    assert (found.request.width, found.settings.offload, found.card) == (832, "model", "a40")
    found = cardfit.autopsy(CALL + OOM, {"num_frames": 17})
    assert (found.request.model, found.request.num_frames) == ("wan2.1-t2v-14b", 17)


def test_the_page_puts_the_plan_first_and_a_command_that_can_be_typed():
    found = cardfit.autopsy(CALL + OOM)
    lines = page.lines(found, Style())
    text = "\n".join(lines)
    first = next(line for line in lines if line.startswith("Do first"))
    assert "model offload" in first
    assert "As it ran 54.0 GiB in decode, does not fit" in text
    assert max(map(len, lines)) <= 100
    command = text[text.index("Next") + 4 :].replace("\\\n", " ").split()
    assert command[:3] == ["cardfit", "plan", "wan2.1-t2v-14b"]
    assert command[-3:] == [found.card, "--as", "code"]


@pytest.mark.parametrize(
    "error",
    [
        MissingExtra("plan-needs-trace", package="torch"),
        DryRunFailed("autopsy-planner-failed", reason="no"),
    ],
)
def test_a_planner_that_cannot_answer_is_a_note(monkeypatch, error):
    fails_with(monkeypatch, error)
    found = cardfit.autopsy(CALL + OOM)
    assert (found.cause, found.as_run) == ("decode_untiled", None)
    assert "autopsy-planner-failed" in [note.code for note in found.notes]


def test_a_pasted_size_that_cannot_be_is_a_note_and_a_given_one_an_error():
    text = CALL.replace("num_frames=81", "num_frames=81, num_inference_steps=50").replace(
        "pipe.to", "pipe.vae.enable_tiling(); X(decode_chunk_size=8); pipe.to"
    )
    found = cardfit.autopsy(text + OOM)  # this pipeline takes no decode_chunk_size
    assert "autopsy-planner-failed" in [note.code for note in found.notes]
    with pytest.raises(BadRequest):
        cardfit.autopsy(text + OOM, {"num_frames": 81})
    with pytest.raises(BadRequest):
        cardfit.autopsy(OOM, {"model": "wan2.1-t2v-14b", "width": 3})
    with pytest.raises(BadRequest, match="Add --model"):
        cardfit.autopsy(OOM, {"width": 832})
    with pytest.raises(UnknownCard):
        cardfit.autopsy(CALL + OOM, card="rtx-9999")


def test_an_end_without_memory_needs_no_dry_run(on_paper):
    found = cardfit.autopsy(CALL + "RuntimeError: expected scalar type Half but found Float")
    assert found.cause == "dtype" and on_paper == []


def test_host_ram_is_counted_where_host_ram_ran_out():
    found = cardfit.autopsy(CALL + "Loading checkpoint shards:  10%|# | 1/7\nKilled\n", card="l40")
    assert found.cause == "host_ram"
    disk = next(cure for cure in found.cures if cure.code == "weights_on_disk")
    assert disk.predicted.host_bytes == 37 * GIB
    assert "of host RAM" in "\n".join(page.lines(found, Style()))
