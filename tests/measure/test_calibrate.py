"""Factors from records, and what the next question makes of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from cardfit import cards
from cardfit.errors import BadFile, BadRequest
from cardfit.measure.calibrate import calibrate
from cardfit.predict import calibration
from cardfit.predict.efficiency import spread
from cardfit.records.models import Machine, Outcome, Predicted, PredictedStage, Record
from cardfit.units import GIB, MIB

_path = Path(__file__).parents[1] / "records" / "make_record.py"
_spec = importlib.util.spec_from_file_location("make_record", _path)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)

STAGE = PredictedStage(
    name="denoise", component="transformer", calls=3, weights_bytes=0, activation_bytes=0,
    allocated_bytes=10 * GIB, reserved_bytes=10 * GIB, seconds=5.0,
)  # fmt: skip
BEFORE = Predicted(
    stages=(STAGE,), allocated_bytes=10 * GIB, reserved_bytes=10 * GIB, host_bytes=0, seconds=10.0
)


def measured(seconds: float, context_mib: int = 400, **fields: Any) -> Record:
    row = make_record.repetition(seconds, 11 * GIB)
    row = row.model_copy(
        update={"figures": {"device_used_peak_bytes": 11 * GIB + context_mib * MIB}}
    )
    given = {
        "machine": Machine(os="linux", card="rtx-4090"), "predicted": BEFORE, "repetitions": (row,),
    }  # fmt: skip
    return make_record.record(**{**given, **fields})  # type: ignore[no-any-return]


def test_a_factor_is_the_median_and_what_is_left_is_told(data: Path) -> None:
    records = [measured(9.0, 300), measured(12.0, 400), measured(15.0, 500)]
    found = calibrate(records).cards["rtx-4090"]
    assert found.time is not None and found.time.factor == pytest.approx(1.2)
    assert (found.time.low, found.time.high) == (pytest.approx(0.75), pytest.approx(1.25))
    assert found.stages["denoise"].factor == pytest.approx(2.4)
    assert found.allocated is not None and found.allocated.factor == pytest.approx(1.1)
    assert (found.context_low_bytes, found.context_likely_bytes, found.context_high_bytes) == (
        300 * MIB, 400 * MIB, 500 * MIB,
    )  # fmt: skip


def test_the_next_question_uses_it(data: Path) -> None:
    assert calibration.correction("rtx-4090") is None and calibration.context("rtx-4090") == {}
    card = cards.load()["rtx-4090"]
    before = cards.usable(card, **calibration.context("rtx-4090")).usable
    calibrate([measured(12.0, 800)])
    found = calibration.correction("rtx-4090")
    assert found is not None and found.factor == pytest.approx(1.2)
    assert found.spread == spread()  # one run narrows nothing
    assert cards.usable(card, **calibration.context("rtx-4090")).usable.likely < before.likely
    assert [note.args["n"] for note in calibration.notes(["l4", "rtx-4090"])] == [1]
    calibrate([measured(each) for each in (11.0, 11.5, 12.0, 12.5, 13.0)])
    narrow = calibration.correction("rtx-4090")
    assert narrow is not None and (narrow.spread.low, narrow.spread.high, narrow.spread.n) == (
        pytest.approx(11 / 12), pytest.approx(13 / 12), 5,
    )  # fmt: skip


def test_what_cannot_be_learnt_from_is_counted(data: Path) -> None:
    bad = [
        measured(1.0, outcome=Outcome(kind="oom")),
        measured(1.0, machine=Machine(os="linux")),
        measured(1.0, predicted=None),
    ]
    with pytest.raises(BadRequest, match="none of 3 records can be learnt from"):
        calibrate(bad)
    assert not calibration.path().exists()
    found = calibrate([*bad, measured(12.0)], keep=False)
    assert found.left_out == {"not-ok": 1, "no-card": 1, "not-predicted": 1}
    assert not calibration.path().exists()


def test_a_damaged_file_counts_as_none_and_is_said_when_asked(data: Path) -> None:
    data.mkdir()
    calibration.path().write_text("{}")
    assert calibration.correction("rtx-4090") is None
    with pytest.raises(BadFile, match="Make it anew with cardfit calibrate"):
        calibration.load()
