"""The fake device: a record in milliseconds that nobody learns from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cardfit
from cardfit.errors import BadRequest, UnknownCard
from cardfit.measure.fake import REPETITION_S, is_fake
from cardfit.measure.here import driver_index, here
from cardfit.records import files
from cardfit.records.models import Predicted, PredictedStage, Reason
from cardfit.records.verbs import listed


def test_it_writes_a_whole_record_that_says_what_it_is(data: Path) -> None:
    seen: list[Any] = []
    record = cardfit.run(
        "flux.1-dev", device="fake", repeats=3, watcher=lambda moment, _: seen.append(moment)
    )
    assert files.read(files.records_folder() / record.id) == record == listed()[0]
    assert record.ok and record.fake and record.predicted is None
    assert record.notes[-1].text.startswith("nothing ran")
    phases = [(each.phase, each.number) for each in record.repetitions]
    assert phases == [("load", 0), ("first", 0), ("steady", 0), ("steady", 1), ("steady", 2)]
    for each in record.repetitions[1:]:
        assert sum(stage.seconds for stage in each.stages) == pytest.approx(REPETITION_S)
        assert len(each.step_seconds) == record.request.num_inference_steps  # type: ignore[union-attr]
    assert [moment.phase for moment in seen] == [phase for phase, _ in phases]


def test_nothing_of_torch_is_loaded(data: Path) -> None:
    program = (
        "import sys, cardfit; r = cardfit.run('wan2.1-t2v-14b', device='fake'); "
        "print(r.outcome.kind, sorted({'torch', 'diffusers', 'pynvml'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "ok []", ran.stderr


def test_nobody_learns_or_chooses_from_it(data: Path) -> None:
    record = cardfit.run("flux.1-dev", device="fake")
    with pytest.raises(BadRequest, match="fake 1"):
        cardfit.calibrate()
    with pytest.raises(BadRequest, match="nothing ran"):
        cardfit.choose("flux.1-dev")
    real = record.model_copy(update={"device": "cuda:0", "id": files.new_id()})
    found = cardfit.choose(records=[record, real])
    assert [each.records for each in found.candidates] == [(real.id,)]


def test_a_card_that_is_not_here_runs_out_of_its_memory(data: Path) -> None:
    def needs(size: int) -> tuple[Predicted, tuple[Reason, ...]]:
        stage = PredictedStage(
            name="decode", component="vae", calls=1, weights_bytes=0, activation_bytes=size, allocated_bytes=size,
            reserved_bytes=size,
        )  # fmt: skip
        found = Predicted(stages=(stage,), allocated_bytes=size, reserved_bytes=size, host_bytes=0)
        return found, ()

    room = here("fake:rtx-4090").usable_bytes
    assert room is not None and 22 * 2**30 < room < 24 * 2**30
    fits = cardfit.run("flux.1-dev", device="fake:rtx-4090", predict=needs(room))
    assert fits.ok and fits.peak("reserved_peak_bytes") == room
    full = cardfit.run("flux.1-dev", device="fake:rtx-4090", predict=needs(room + 1))
    assert (full.outcome.kind, full.outcome.stage, full.outcome.reserved_bytes) == (
        "oom",
        "decode",
        room,
    )
    assert full.machine.card is None  # no card ran
    with pytest.raises(UnknownCard):
        cardfit.run("flux.1-dev", device="fake:nothing-such")


def test_a_timeout_is_kept_as_one(data: Path) -> None:
    record = cardfit.run("flux.1-dev", device="fake", repeats=50, timeout_s=3.5 * REPETITION_S)
    assert record.outcome.kind == "timeout" and 1 <= len(record.repetitions) <= 3


@pytest.mark.parametrize("name", ["fakes", "fake:", "fake:a b", "cuda:fake", ""])
def test_only_its_own_names_are_fake(name: str) -> None:
    assert not is_fake(name)
    with pytest.raises(BadRequest):
        cardfit.run("flux.1-dev", device=name)


def test_the_drivers_number_of_a_card_follows_what_cuda_sees(monkeypatch: Any) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert driver_index(1) == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5")
    assert (driver_index(0), driver_index(1), driver_index(2)) == (3, 5, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-8f2a")
    assert driver_index(0) == 0
