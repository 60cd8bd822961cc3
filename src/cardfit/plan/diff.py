"""What differs between two answers, in words: stages, cards, versions, settings, the request.

In: two `Answer`s, or the file of one. Out: a `Diff` (schema ``cardfit.diff/1``). Bytes and seconds are exact; the
sentences round. What is alike is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cardfit.errors import BadFile
from cardfit.messages import say
from cardfit.plan.answer import Answer, CardRow, Said, StageRow, Verdict
from cardfit.plan.target import short_name
from cardfit.request.read import read_text
from cardfit.units import MIB, human_bytes, human_seconds, signed_bytes

SCHEMA: Literal["cardfit.diff/1"] = "cardfit.diff/1"
MAX_ANSWER_BYTES = 32 * MIB
_Kind = TypeVar("_Kind", bound=BaseModel)
_SECONDS_SHARE = 0.01  # of the time: a smaller difference is left out of the words


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FieldDiff(_Frozen):
    """One version, field of the request or knob that differs; None where one side has none."""

    name: str
    before: object
    after: object


class StageDiff(_Frozen):
    """One stage: reserved bytes with everything as the answer's own settings say."""

    name: str
    before_bytes: int | None
    after_bytes: int | None
    text: Said


class CardDiff(_Frozen):
    """One card: verdict, reserved peak and likely seconds on both sides."""

    card: str
    name: str
    before: Verdict | None
    after: Verdict | None
    before_bytes: int | None
    after_bytes: int | None
    before_seconds: float | None
    after_seconds: float | None
    text: Said


class Diff(_Frozen):
    """The whole difference; ``same`` when nothing of it is left."""

    schema_: Annotated[Literal["cardfit.diff/1"], Field(alias="schema")] = SCHEMA
    same: bool
    models: tuple[str, str]
    versions: tuple[FieldDiff, ...]
    request: tuple[FieldDiff, ...]
    settings: tuple[FieldDiff, ...]
    peak: StageDiff | None
    stages: tuple[StageDiff, ...]
    cards: tuple[CardDiff, ...]


def read_answer(path: Path) -> Answer:
    """The answer in the JSON file at ``path``. Raises BadFile for one that is too large or is something else."""
    return read_saved(path, (Answer,), "answer-other-schema")


def read_saved(path: Path, kinds: Sequence[type[_Kind]], other: str) -> _Kind:
    """What a command printed with ``--json``, as the one of ``kinds`` whose schema the file names.

    Raises BadFile, with the code ``other`` for another schema.
    """
    text = read_text(path, MAX_ANSWER_BYTES)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile("answer-not-json", path=path) from error
    found = fields.get("schema") if isinstance(fields, dict) else None
    named = {kind.model_fields["schema_"].default: kind for kind in kinds}
    if not isinstance(found, str) or found not in named:
        raise BadFile(other, path=path, found=found or "-", wanted=", ".join(named))
    try:
        return named[found].model_validate(fields)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise BadFile("answer-damaged", path=path, where=where) from error


def make_diff(before: Answer, after: Answer) -> Diff:
    """What ``after`` has otherwise than ``before``."""
    versions = _fields(before.versions, after.versions)
    request = _fields(before.request.model_dump(mode="json"), after.request.model_dump(mode="json"))
    settings = _fields(
        before.settings.model_dump(mode="json"), after.settings.model_dump(mode="json")
    )
    stages = _stages(before, after)
    peak = _peak(before, after)
    cards = _cards(before, after)
    return Diff(
        same=not (versions or request or settings or stages or cards or peak),
        models=(before.model.id, after.model.id),
        versions=versions,
        request=request,
        settings=settings,
        peak=peak,
        stages=stages,
        cards=cards,
    )


def _fields(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[FieldDiff, ...]:
    names = [*before, *(name for name in after if name not in before)]
    return tuple(
        FieldDiff(name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )


def _moved(name: str, before: int, after: int) -> Said:
    return Said.of(
        "diff-moved",
        name=name,
        change=signed_bytes(after - before),
        before=human_bytes(before),
        after=human_bytes(after),
    )


def _stages(before: Answer, after: Answer) -> tuple[StageDiff, ...]:
    left = {stage.name: stage for stage in before.stages}
    right = {stage.name: stage for stage in after.stages}
    names = [*left, *(name for name in right if name not in left)]
    found = (_stage(name, left.get(name), right.get(name)) for name in names)
    return tuple(each for each in found if each is not None)


def _stage(name: str, before: StageRow | None, after: StageRow | None) -> StageDiff | None:
    old = None if before is None else before.reserved_bytes
    new = None if after is None else after.reserved_bytes
    if old == new:
        return None
    if old is not None and new is not None:
        text = _moved(name, old, new)
    else:
        code = "diff-only-before" if new is None else "diff-only-after"
        text = Said.of(code, name=name, size=human_bytes(new if old is None else old))  # type: ignore[arg-type]
    return StageDiff(name=name, before_bytes=old, after_bytes=new, text=text)


def _peak(before: Answer, after: Answer) -> StageDiff | None:
    old, new = before.peak.reserved_bytes, after.peak.reserved_bytes
    if old == new:
        return None
    text = _moved(say("diff-peak"), old, new)
    return StageDiff(name="peak", before_bytes=old, after_bytes=new, text=text)


def _cards(before: Answer, after: Answer) -> tuple[CardDiff, ...]:
    left = {row.card: row for row in before.cards}
    right = {row.card: row for row in after.cards}
    names = [*left, *(card for card in right if card not in left)]
    found = (_card(left.get(card), right.get(card)) for card in names)
    return tuple(each for each in found if each is not None)


def _card(before: CardRow | None, after: CardRow | None) -> CardDiff | None:
    known = after or before
    assert known is not None
    parts = _card_words(before, after)
    if not parts:
        return None
    return CardDiff(
        card=known.card,
        name=known.name,
        before=None if before is None else before.verdict,
        after=None if after is None else after.verdict,
        before_bytes=None if before is None else before.peak_reserved_bytes,
        after_bytes=None if after is None else after.peak_reserved_bytes,
        before_seconds=_likely(before),
        after_seconds=_likely(after),
        text=Said.of("diff-card", card=short_name(known.name), changes=", ".join(parts)),
    )


def _card_words(before: CardRow | None, after: CardRow | None) -> list[str]:
    if before is None or after is None:
        return [say("diff-card-after" if before is None else "diff-card-before")]
    parts = []
    if before.verdict != after.verdict:
        parts.append(_was(_verdict(before.verdict), _verdict(after.verdict)))
    if before.settings != after.settings:
        parts.append(_was(before.settings_text or "-", after.settings_text or "-"))
    old, new = before.peak_reserved_bytes, after.peak_reserved_bytes
    if old is not None and new is not None and old != new:
        parts.append(signed_bytes(new - old))
    parts += _times(_likely(before), _likely(after))
    return parts


def _times(old: float | None, new: float | None) -> list[str]:
    if old is None or new is None or abs(new - old) <= _SECONDS_SHARE * old:
        return []
    return [_was(human_seconds(old), human_seconds(new))]


def _was(before: str, after: str) -> str:
    return say("diff-was", {"before": before, "after": after})


def _verdict(verdict: Verdict) -> str:
    return say("verdict-" + verdict.replace("_", "-"))


def _likely(row: CardRow | None) -> float | None:
    return None if row is None or row.seconds is None else row.seconds.likely
