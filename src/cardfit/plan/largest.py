"""The inverse question: the largest number of frames, size or batch that one card holds, and what stops the next.

In: the values that may be asked for and a function that plans one of them on the card. Out: a `Largest` (schema
``cardfit.largest/1``). Nothing is assumed of the values between: every verdict named was computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.errors import DryRunFailed
from cardfit.plan.answer import Answer, CardRow, ModelRow, Price, Said, Seconds, Verdict
from cardfit.plan.vary import Step, Vary, edge, nearest
from cardfit.request import ExactRequest, Request, Settings

SCHEMA: Literal["cardfit.largest/1"] = "cardfit.largest/1"
# the request, how many were asked before
Ask = Callable[[Request, int], Answer]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Tried(_Frozen):
    """One value that was planned: the verdict and what decides it; ``verdict`` is None where the dry run failed."""

    value: str
    request: ExactRequest | None
    verdict: Verdict | None
    settings: Settings | None
    settings_text: str
    price_of_it: tuple[Price, ...]
    limiting_stage: str | None
    peak_reserved_bytes: int | None
    device_bytes: int | None
    usable_bytes: int | None
    headroom_bytes: int | None
    host_bytes: int | None
    seconds: Seconds | None
    why: Said


class Largest(_Frozen):
    """The whole answer: the largest value that fits, the largest that is at least tight, and what stops the next.

    ``next`` is the next value above ``tight`` (above ``fits`` where nothing is tight), None where the values end.
    ``ends_at`` is the last value that could have been tried.
    """

    schema_: Annotated[Literal["cardfit.largest/1"], Field(alias="schema")] = SCHEMA
    versions: dict[str, str]
    model: ModelRow
    card: str
    card_name: str
    vary: Vary
    request: ExactRequest
    settings: Settings
    fits: Tried | None
    tight: Tried | None
    next: Tried | None
    ends_at: str
    monotone: bool
    tried: tuple[Tried, ...]
    notes: tuple[Said, ...]


@dataclass(slots=True)
class _Asked:
    """The memo: each place is planned once."""

    request: ExactRequest
    steps: tuple[Step, ...]
    ask: Ask
    found: dict[int, Tried] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)

    def at(self, place: int) -> Tried:
        if place not in self.found:
            step = self.steps[place]
            try:
                answer = self.ask(step.on(self.request), len(self.found))
            except DryRunFailed as failed:
                self.found[place] = _failed(step, failed)
            else:
                self.answers[place] = answer
                self.found[place] = _tried(step, answer.request, answer.cards[0])
        return self.found[place]


def make_largest(
    request: ExactRequest, settings: Settings, vary: Vary, steps: tuple[Step, ...], ask: Ask
) -> Largest:
    """The answer for ``steps``, smallest first; ``ask`` plans a request on the one card."""
    asked, start = _Asked(request, steps, ask), nearest(steps, request)
    fits = edge(len(steps), start, lambda at: asked.at(at).verdict == "fits")
    after = start if fits.at is None else min(fits.at + 1, len(steps) - 1)
    holds = edge(len(steps), after, lambda at: asked.at(at).verdict in ("fits", "tight"))
    top = holds.at if holds.at is not None else -1
    if not asked.answers:  # no dry run went through: its error says more than an empty answer
        ask(steps[start].on(request), len(asked.found))
    answer = next(iter(asked.answers.values()))
    row = answer.cards[0]
    stopped = asked.at(top + 1) if top + 1 < len(steps) else None
    monotone = fits.monotone and holds.monotone
    tight = None if holds.at is None or holds.at == fits.at else asked.found[holds.at]
    return Largest(
        versions=answer.versions,
        model=answer.model,
        card=row.card,
        card_name=row.name,
        vary=vary,
        request=request,
        settings=settings,
        fits=None if fits.at is None else asked.found[fits.at],
        tight=tight,
        next=stopped,
        ends_at=steps[-1].text,
        monotone=monotone,
        tried=tuple(asked.found[at] for at in sorted(asked.found)),
        notes=tuple(_notes(asked, fits.at, top, monotone, vary)),
    )


def _notes(asked: _Asked, fits: int | None, top: int, monotone: bool, vary: Vary) -> list[Said]:
    """What a reader must know: an answer that is not monotone or not bounded, and the model's own cautions."""
    said = []
    if not monotone:
        said.append(Said.of("largest-not-monotone"))
    if top == len(asked.steps) - 1:
        said.append(Said.of("largest-no-end", value=asked.steps[-1].text, flag=vary))
    place = fits if fits is not None else top
    if place in asked.answers:
        said += [note for note in asked.answers[place].notes if note.code in _OF_THE_VALUE]
    return said


# notes of a plan that belong to the value found and not to the question
_OF_THE_VALUE = frozenset(
    {
        "larger-than-made-for",
        "longer-than-made-for",
        "plan-comfyui",
        "plan-ram-unknown",
        "plan-left-out",
    }
)


def _tried(step: Step, request: ExactRequest, row: CardRow) -> Tried:
    same = {name: getattr(row, name) for name in Tried.model_fields if hasattr(row, name)}
    return Tried(value=step.text, request=request, **same)


def _failed(step: Step, failed: DryRunFailed) -> Tried:
    return Tried(
        value=step.text,
        request=None,
        verdict=None,
        settings=None,
        settings_text="",
        price_of_it=(),
        limiting_stage=None,
        peak_reserved_bytes=None,
        device_bytes=None,
        usable_bytes=None,
        headroom_bytes=None,
        host_bytes=None,
        seconds=None,
        why=Said.of(failed.code, **failed.args_),
    )
