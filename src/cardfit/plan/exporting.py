"""Whether the cards can encode what was asked for, before hours of sampling.

In: a request with ``export``, the rows of the answer, its picks, the catalog. Out: notes: which cards have no such
encoder and what the processor takes instead, whether the card's encoder would be worth anything, and what the picked
card makes an hour at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cardfit.cards.card import Card
from cardfit.cards.codecs import supports
from cardfit.errors import Note
from cardfit.plan.answer import Recommended
from cardfit.plan.rows import Ranked
from cardfit.plan.target import short_name
from cardfit.plan.throughput import chosen, count_text, outputs_per_hour
from cardfit.request import ExactRequest
from cardfit.units import human_seconds

NVENC = "nvenc-"
NAMED = 6  # cards that a note names
MATTERS = 0.05  # share of a run below which its export is not worth a thought


def export_notes(
    request: ExactRequest,
    ranked: Sequence[Ranked],
    recommended: Recommended,
    catalog: Mapping[str, Card],
) -> tuple[Note, ...]:
    """What should be said of the export that ``request`` asks for; nothing where it asks for none."""
    if request.export is None:
        return ()
    if request.num_frames == 1:
        return (Note("plan-export-image", {"codec": request.export}),)
    notes = []
    codec = request.export.removeprefix(NVENC)
    on_cpu = max((_export_s(each) for each in ranked), default=0.0)
    took = {"codec": codec, "seconds": human_seconds(on_cpu), "frames": request.frames_after_post}
    if request.export.startswith(NVENC):
        cannot, unknown = [], []
        for each in ranked:
            card = catalog.get(each.row.card)
            if card is None or card.vendor != "NVIDIA":
                continue
            known = supports(card, "nvenc", codec)
            if known is None:
                unknown.append(short_name(card.name))
            elif not known:
                cannot.append(short_name(card.name))
        if cannot:
            notes.append(Note("plan-no-encoder", {**took, "cards": _names(cannot)}))
        if unknown:
            args: dict[str, object] = {"codec": codec, "cards": _names(unknown)}
            notes.append(Note("plan-encoder-unknown", args))
        notes += _most(ranked, recommended, catalog, codec, request.batch)
    runs = [each.time.total.likely for each in ranked if each.time and each.time.total]
    if runs and on_cpu:
        share = on_cpu / (min(runs) + on_cpu)
        code = "plan-export-matters" if share >= MATTERS else "plan-export-small"
        notes.append(Note(code, {**took, "percent": f"{100 * share:.1f}"}))
    return tuple(notes)


def _most(
    ranked: Sequence[Ranked],
    recommended: Recommended,
    catalog: Mapping[str, Card],
    codec: str,
    batch: int,
) -> list[Note]:
    """What the picked card makes in an hour where it encodes beside its runs: no rate of an encoder is published."""
    row = chosen(ranked, recommended)
    card = None if row is None else catalog.get(row.row.card)
    if row is None or card is None or row.row.seconds is None:
        return []
    if not supports(card, "nvenc", codec):
        return []
    most = count_text(outputs_per_hour(row.row.seconds.likely, batch))
    return [Note("plan-throughput-nvenc", {"card": short_name(card.name), "most": most})]


def _export_s(each: Ranked) -> float:
    export = each.time.export if each.time is not None else None
    return 0.0 if export is None else export.likely


def _names(cards: Sequence[str]) -> str:
    each = list(dict.fromkeys(cards))
    more = f" +{len(each) - NAMED}" if len(each) > NAMED else ""
    return ", ".join(each[:NAMED]) + more
