"""The pipeline on paper of the tests of `plan`, asked for by shots, with a clock on paper: seconds by card."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cardfit.fleet.farm import Kind, Machine
from cardfit.plan.verdict import Host
from cardfit.predict.timing import Seconds, TimeEstimate

_spec = importlib.util.spec_from_file_location(
    "on_paper", Path(__file__).parents[1] / "plan" / "conftest.py"
)
assert _spec is not None and _spec.loader is not None
on_paper = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(on_paper)

SECONDS = {"large": 60.0, "middle": 120.0, "small": 300.0}  # by card; others are not known


def timed(card: str, settings: object) -> TimeEstimate | None:
    if card not in SECONDS:
        return None
    each = SECONDS[card]
    return TimeEstimate(
        stages=(),
        total=Seconds(0.8 * each, each, 1.5 * each),
        step=None,
        load=Seconds(10.0, 20.0, 40.0),
        export=Seconds(0.0, 0.0, 0.0),
        ceiling_s=None,
        reached=None,
        basis="rule",
        n=0,
        left_out=(),
        notes=(),
    )


class Paper:
    """An `ask` that plans every request as the pipeline on paper, and counts."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def __call__(self, maker, request, settings, **which):
        self.asked.append((request, settings))
        frames = {} if request.num_frames is None else {"num_frames": request.num_frames}
        return maker(
            on_paper.exact(model=request.model, batch=request.batch, **frames),
            settings,
            (),
            Host(),
            on_paper.knobs(),
            on_paper.estimates(),
            on_paper.facts(),
            timer=timed,
        )


@pytest.fixture
def ask() -> Paper:
    return Paper()


def kind(card: str, usable_gib: float, ram_gib: float | None = None, **more: object) -> Kind:
    ram = None if ram_gib is None else on_paper.gib(ram_gib)
    return Kind(on_paper.target(card, usable_gib, machine_ram_bytes=ram, **more), Host())


def machine(
    name: str,
    card: str,
    usable_gib: float,
    *,
    ram_gib: float | None = None,
    count: int = 1,
    spans: tuple[tuple[float, float], ...] = ((0.0, float("inf")),),
    price: object = None,
) -> Machine:
    kinds = (kind(card, usable_gib, ram_gib),) * count
    return Machine(name, kinds, kinds[0].target.machine_ram_bytes, spans, price)
