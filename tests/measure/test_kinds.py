"""Factors by kind of kernel, from records of a card whose truth is known."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from cardfit import cards
from cardfit.measure.calibrate import calibrate
from cardfit.measure.compared import rows
from cardfit.measure.kinds import kind_factors, seen_in
from cardfit.predict import calibration
from cardfit.predict.calibration import Factor
from cardfit.predict.timing import Correction, seconds
from cardfit.predict.totals import Parts, StageWork, Totals
from cardfit.records.models import Machine, Predicted, PredictedStage, Record, Stage
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Work

_path = Path(__file__).parents[1] / "records" / "make_record.py"
_spec = importlib.util.spec_from_file_location("make_record", _path)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)

TRUTH = {"matmul": 1.1, "attention": 1.6, "elementwise": 0.8}
SHARES = {  # what three models are made of, in seconds predicted for a step of each kind
    "a": {"matmul": 8.0, "attention": 1.0, "elementwise": 1.0},
    "b": {"matmul": 3.0, "attention": 6.0, "elementwise": 1.0},
    "c": {"matmul": 2.0, "attention": 1.0, "elementwise": 4.0},
}


def record(
    model: str, parts: dict[str, float], noise: float = 0.0, width: int = 512, **more: float
) -> Record:
    """A run whose denoising took the truth's time of ``parts``, off by ``noise``; ``more`` are no kernels."""
    predicted = sum(parts.values()) + sum(more.values())
    took = sum(TRUTH[kind] * part for kind, part in parts.items()) * (1 + noise)
    stage = PredictedStage(
        name="denoise", component="transformer", calls=1, weights_bytes=0, activation_bytes=0,
        allocated_bytes=1, reserved_bytes=1, seconds=predicted, kind_seconds={**parts, **more},
    )  # fmt: skip
    before = Predicted(
        stages=(stage,), allocated_bytes=1, reserved_bytes=1, host_bytes=0, seconds=predicted
    )
    row = make_record.repetition(took, 1)
    seen = Stage(name="denoise", component="transformer", calls=1, seconds=took)
    request = ExactRequest(
        model=model, task="text-to-image", width=width, height=512, num_frames=1,
        num_inference_steps=1, guidance_scale=1.0, prompt_tokens=7,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "model": model,
        "request": request,
        "machine": Machine(os="linux", card="rtx-4090"),
        "predicted": before,
        "repetitions": (row.model_copy(update={"stages": (seen,)}),),
    }
    return make_record.record(**fields)  # type: ignore[no-any-return]


def runs(noise: float = 0.0) -> list[Record]:
    """Three models at four sizes: attention grows faster than the rest."""
    chance = random.Random(0)
    return [
        record(
            model,
            {
                kind: part * grow ** (2 if kind == "attention" else 1)
                for kind, part in parts.items()
            },
            noise=chance.uniform(-noise, noise),
            width=512 + at,
        )
        for model, parts in SHARES.items()
        for at, grow in enumerate((1.0, 1.5, 2.0, 3.0))
    ]


def factors_of(records: list[Record]) -> dict[str, Factor]:
    return kind_factors([seen for each in records for seen in seen_in(each, rows(each))])


def test_the_truth_of_each_kind_comes_out() -> None:
    found = factors_of(runs())
    for kind, factor in TRUTH.items():
        assert found[kind].factor == pytest.approx(factor, rel=0.03)
        assert 0.97 < found[kind].low <= 1 <= found[kind].high < 1.03


def test_noise_stays_in_what_is_left() -> None:
    found = factors_of(runs(noise=0.05))
    for kind, factor in TRUTH.items():
        assert found[kind].factor == pytest.approx(factor, rel=0.15)
    assert found["matmul"].high - found["matmul"].low > 0.02


def test_one_run_measured_often_weighs_as_one() -> None:
    often = [*runs(noise=0.05), *(record("a", SHARES["a"], width=512) for _ in range(50))]
    found = factors_of(often)
    assert found["attention"].factor == pytest.approx(TRUTH["attention"], rel=0.15)


def test_too_few_different_stages_tell_no_kinds_apart() -> None:
    same = [record("a", SHARES["a"]) for _ in range(40)]
    assert factors_of(same) == {}
    assert factors_of(runs()[:3]) == {}
    assert factors_of([]) == {}


def test_what_waits_for_launches_or_transfers_is_left_out() -> None:
    waiting = [
        record(m, p, width=512 + at, transfer=5.0) for at in range(4) for m, p in SHARES.items()
    ]
    assert factors_of(waiting) == {}
    assert factors_of([*runs(), *waiting]) == factors_of(runs())


def test_a_kind_that_is_nowhere_a_quarter_is_not_told() -> None:
    small = [
        record(model, {**parts, "elementwise": 0.05}, width=512 + at)
        for at in range(4)
        for model, parts in SHARES.items()
    ]
    assert set(factors_of(small)) == {"matmul", "attention"}


def test_the_next_plan_uses_them_and_the_rest_takes_the_runs_factor(data: Path) -> None:
    kept = calibrate(runs())
    factors = kept.cards["rtx-4090"]
    assert set(factors.kinds) == set(TRUTH)
    told = calibration.correction("rtx-4090")
    assert told is not None and set(told.kinds) == set(TRUTH)
    card = cards.load()["rtx-4090"]

    def time(correction: Correction | None, *work: Work) -> float:
        stage = StageWork("denoise", "transformer", 1, work)
        part = Parts("transformer", "Net", "bfloat16", 1, 1, 1)
        totals = Totals((stage,), (part,), ("transformer",), 1, 1, 1, 1, None)
        found = seconds(totals, Settings(), card, correction=correction)
        assert found.total is not None
        return found.total.likely

    matmul = Work("matmul", "half", 1e15, 1e9, 1)
    attention = Work("attention", "half", 1e15, 1e9, 1)
    for work in (matmul, attention):
        ratio = time(told, work) / time(None, work)
        assert ratio == pytest.approx(factors.kinds[work.kind].factor, rel=0.01)
    convolution = Work("convolution", "half", 1e15, 1e9, 1)
    assert time(told, convolution) / time(None, convolution) == pytest.approx(told.factor, rel=0.01)
