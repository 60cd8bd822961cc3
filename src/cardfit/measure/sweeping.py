"""The verb `sweep`, wired: cells from a file, from axes or from the plan's edge, each predicted, then run in turn.

In: what a person asks. Out: a `Sweep`. See `cardfit.measure.sweep` for how cells are run and gone on with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cardfit.errors import BadRequest
from cardfit.measure.again import RANDOM, check
from cardfit.measure.against import Against
from cardfit.measure.edge import near_the_edge
from cardfit.measure.here import Here, here, pretended
from cardfit.measure.run import Watcher
from cardfit.measure.sweep import Cell, Many, Sweep, in_turn, sweep_id
from cardfit.measure.sweep import sweep as run_cells
from cardfit.measure.sweep_file import SweepFile, cells, read_sweep_file
from cardfit.measure.verbs import Foretold, Progress, asked, predict_run, run
from cardfit.quality.verbs import needed
from cardfit.records.models import FAKE, Predicted, Record, Weights
from cardfit.request import ExactRequest, Request, Settings

Combination = tuple[Request, Settings, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Each:
    """How every cell of a sweep is run: called with one, it runs it here and returns its record."""

    sweep: str
    weights: str | Path
    configs: Path | None
    device: str
    repeats: int
    timeout_s: float | None
    store: str | None
    keep_outputs: bool
    watcher: Watcher | None = None

    def __call__(self, cell: Cell) -> Record:
        pretend = self.device == FAKE and cell.card is not None
        return run(
            cell.request,
            cell.settings,
            weights=self.weights,
            configs=self.configs,
            device=f"{FAKE}:{cell.card}" if pretend else self.device,
            repeats=self.repeats,
            timeout_s=self.timeout_s,
            store=self.store,
            predict=(cell.predicted, cell.notes),
            keep_outputs=self.keep_outputs,
            sweep=self.sweep,
            cell=cell.key,
            watcher=self.watcher,
        )


def sweep(
    request: Request | str | Path | SweepFile,
    settings: Settings | None = None,
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    auto: bool = False,
    name: str | None = None,
    weights: str | Path = RANDOM,
    configs: Path | None = None,
    device: str = "auto",
    repeats: int = 1,
    timeout_s: float | None = None,
    store: str | None = None,
    predict: bool = True,
    reference: str | None = None,
    cards: Sequence[str] = (),
    many: Many = in_turn,
    progress: Progress | None = None,
    watcher: Watcher | None = None,
    said: Callable[[Sweep], None] = lambda _state: None,
) -> Sweep:
    """Measure every combination of ``axes`` (or of a sweep's file), each in its own child, and go on where it ended.

    ``auto`` takes the settings that the prediction puts near the card's edge. Asked again after any end, a sweep runs
    only what has no finished record. ``timeout_s`` is for each run. ``reference`` names one cell by its values
    (``offload=none,vae_tiling=false``) or an earlier record: outputs are kept then, and each is compared with the
    reference's when its cell has run. ``many`` runs the cells, here in turn where it is left out; ``cards`` are what it
    is to run each of them on. Raises as `run` does; BadRequest for axes that cannot be meant, a reference that
    is none, and a sweep that runs already.
    """
    check(repeats, timeout_s, device)
    if reference is not None:
        needed()
    file = _file(request, settings, axes)

    def cells_on(card: str | None) -> list[Cell]:
        machine = here(device) if card is None else pretended(card)
        chosen = _auto(file, machine, weights, configs, progress) if auto else cells(file)
        return [cell_of(each, card, machine) for each in chosen]

    def cell_of(combination: Combination, card: str | None, machine: Here) -> Cell:
        wanted, given, values = combination
        entry, exact, given, _, from_ = asked(wanted, given, weights, configs)
        found: Foretold = (None, ())
        if predict and (device != FAKE or card is not None):
            found = predict_run(entry, exact, given, machine, progress)
        kept = reference is not None
        on = device if card is None else f"{device} {card}"
        return Cell(
            wanted,
            exact,
            given,
            values if card is None else {"card": card, **values},
            key_of(exact, given, from_, on, repeats, outputs=kept),
            *found,
            card,
        )

    every = [cell for card in cards or (None,) for cell in cells_on(card)]
    model = every[0].exact.model
    title = name or sweep_id(model, every)
    against = None if reference is None else Against.of(reference, every, store)
    each = Each(
        title,
        weights,
        configs,
        device,
        repeats,
        timeout_s,
        store,
        keep_outputs=against is not None,
        watcher=watcher,
    )
    go = partial(run_cells, title, model, every, each, many=many, said=said, store=store)
    return go() if against is None else go(first=against.cell, judge=against.judge)


def key_of(
    request: ExactRequest,
    settings: Settings,
    weights: Weights,
    device: str,
    repeats: int,
    *,
    outputs: bool = False,
) -> str:
    """What makes two runs the same cell; one that kept its output is another than one that did not."""
    parts = [each.model_dump(mode="json") for each in (request, settings, weights)]
    text = json.dumps([*parts, device, repeats, *(["outputs"] if outputs else [])], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _file(
    request: Request | str | Path | SweepFile,
    settings: Settings | None,
    axes: Mapping[str, Sequence[Any]] | None,
) -> SweepFile:
    if isinstance(request, Path):
        request = read_sweep_file(request)
    if isinstance(request, str):
        request = Request(model=request)
    if isinstance(request, Request):
        request = SweepFile(request=request)
    more: dict[str, Any] = {}
    if settings is not None:
        own = request.settings.model_dump(exclude_unset=True)
        given = settings.model_dump(exclude_unset=True)
        more["settings"] = Settings.model_validate(own | given)
    if axes:
        more["sweep"] = {**request.sweep, **{name: list(values) for name, values in axes.items()}}
    return request.model_copy(update=more)


def _auto(
    file: SweepFile,
    machine: Here,
    weights: str | Path,
    configs: Path | None,
    progress: Progress | None,
) -> tuple[Combination, ...]:
    if machine.card is None or machine.usable_bytes is None:
        raise BadRequest("sweep-auto-needs-card")
    if file.sweep:
        raise BadRequest("sweep-auto-or-axes", axes=", ".join(file.sweep))
    entry, exact, given, _, _ = asked(file.request, file.settings, weights, configs)

    def need(settings: Settings) -> Predicted | None:
        return predict_run(entry, exact, settings, machine, progress)[0]

    chosen = near_the_edge(entry, given, machine.usable_bytes, need)
    return tuple(
        (file.request, each, {"offload": each.offload, "vae_tiling": each.vae_tiling})
        for each in chosen
    )
