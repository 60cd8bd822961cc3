"""What a person sees of a run while it goes on, and before walking away."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from cardfit.measure.ahead import ahead
from cardfit.measure.run import Moment
from cardfit.records.models import Predicted, PredictedStage, Reason
from cardfit.report import live
from cardfit.report.live import Live
from cardfit.units import GIB

_path = Path(__file__).parents[1] / "records" / "make_record.py"
_spec = importlib.util.spec_from_file_location("make_record", _path)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)

DECODE = PredictedStage(
    name="decode", component="vae", calls=1, weights_bytes=0, activation_bytes=0, allocated_bytes=20 * GIB,
    reserved_bytes=round(20.5 * GIB),
)  # fmt: skip
BEFORE = Predicted(stages=(DECODE,), allocated_bytes=0, reserved_bytes=0, host_bytes=0)


def moment(step: int, **more: Any) -> Moment:
    given = {
        "phase": "first", "number": 0, "stage": "denoise", "step": step, "steps": 50, "held_bytes": 9 * GIB,
        "elapsed_s": 10.0 * step,
    }  # fmt: skip
    return Moment(**{**given, **more})


def test_the_line_before_you_walk_away(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    said: list[str] = []
    shown: list[Any] = []
    seen = Live(
        lambda what, share: shown.append((what, share)), said.append,
        usable_bytes=23 * GIB, price_per_hour=0.55, timeout_s=3600,
    )  # fmt: skip
    record = make_record.record(predicted=BEFORE)
    for step in (0, 1, 2, 3):
        seen(moment(step), record)
        now[0] += 10
    assert len(said) == 1  # once, when two steps have been seen
    words = r"denoise ends \d\d:\d\d; decode needs 20\.5 of 23\.0 GiB; latents saved first; \$0\.55 at most"
    assert re.fullmatch(words, said[0])
    assert re.fullmatch(r"first · denoise · 3/50 · 9\.0 GiB · ends \d\d:\d\d", shown[-1][0])
    assert shown[-1][1] == 3 / 50


def test_nothing_is_said_of_what_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    said: list[str] = []
    seen = Live(None, said.append)
    for step in range(1, 50):
        seen(moment(step), make_record.record())
        now[0] += 0.1
    assert said == []


def test_what_is_not_known_is_left_out() -> None:
    found = ahead(moment(10), make_record.record(), 2.0)
    assert (found.denoise_left_s, found.decode_bytes, found.cost) == (80.0, None, None)
    assert found.latents_kept
    note = Reason.of("run-latents-not-kept", why="disk full")
    assert not ahead(moment(10), make_record.record(notes=(note,)), 2.0).latents_kept
    about = ahead(moment(10), make_record.record(), 2.0, price_per_hour=3600.0)
    assert about.cost == pytest.approx(180.0) and not about.at_most
