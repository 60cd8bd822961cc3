"""The nearest job that fits, over plans made by hand: what a card holds is a rule on paper."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from cardfit.errors import BadRequest, DryRunFailed
from cardfit.library.load import all_models, load
from cardfit.library.rules import resolve
from cardfit.plan.answer import Answer, CardRow, Said
from cardfit.plan.nearest import MOST_CARDS, with_near_misses
from cardfit.request import ExactRequest, Request, Settings

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).parents[1] / "report" / "make_answer.py"
)
assert _spec is not None and _spec.loader is not None
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)

WAN = "wan2.1-t2v-14b"
Peak = Callable[[ExactRequest], float]  # GiB that a request takes of 20 usable


class Paper:
    """`plan` by a rule; it keeps what it was asked."""

    def __init__(self, peak: Peak, cards: tuple[str, ...] = ("l4",)) -> None:
        self.peak, self.cards, self.asked = peak, cards, list[ExactRequest]()

    def plan(
        self, request: Request, settings: Settings, *, cards: tuple[str, ...] | None = None
    ) -> Answer:
        exact, _ = resolve(load(request.model), request)
        self.asked.append(exact)
        rows = (self._row(card, exact) for card in cards or self.cards)
        return made.answer(tuple(rows), request=exact)

    def _row(self, card: str, exact: ExactRequest) -> CardRow:
        row = made.row(card, card.upper(), 24, 20, self.peak(exact), text="model offload")
        return row.model_copy(update={"settings": Settings(offload="model")})

    def near(self, request: Request) -> Answer:
        first = self.plan(request, Settings())
        self.asked.clear()
        return with_near_misses(first, load(request.model), all_models(), self.plan)


def options(said: Said) -> list[dict[str, str]]:
    found = said.args["options"]
    assert isinstance(found, list)
    return found


def work(exact: ExactRequest) -> float:
    return exact.width * exact.height * exact.num_frames / (1280 * 720 * 81)


def test_fewer_frames_instead_of_eighty_one():
    paper = Paper(lambda exact: 21 * work(exact) if exact.model == WAN else 1)
    answer = paper.near(Request(model=WAN, width=1280, height=720, num_frames=81))
    said = answer.cards[0].near_miss
    assert said is not None and said.code == "nearest"
    fits = max(n for n in range(1, 81, 4) if 21 * n / 81 * 1.03 <= 20)
    assert {"field": "num_frames", "value": str(fits), "asked": "81"} in options(said)
    assert f"{fits} frames instead of 81 fits (model offload)." in said.text
    # a size that keeps more of the work stands in front
    assert [each["field"] for each in options(said)] == ["size", "num_frames"]
    assert len(paper.asked) <= 20  # bounded: some looks for frames, some for sizes, no sibling
    assert {exact.model for exact in paper.asked} == {WAN}


def test_the_change_that_keeps_most_is_named():
    """Here frames cost nothing, so only a smaller size helps."""
    paper = Paper(lambda exact: 21 * exact.width * exact.height / (1280 * 720))
    answer = paper.near(Request(model=WAN, width=1280, height=720, num_frames=81))
    said = answer.cards[0].near_miss
    assert said is not None
    (only,) = options(said)
    width, _, height = only["value"].partition("x")
    assert 21 * int(width) * int(height) / (1280 * 720) * 1.03 <= 20
    assert "frames down to 1" in said.text


def test_a_sibling_is_named_where_little_is_left():
    paper = Paper(lambda exact: 30 if exact.model == WAN else 10)
    answer = paper.near(Request(model=WAN, width=1280, height=720, num_frames=81))
    said = answer.cards[0].near_miss
    assert said is not None
    assert options(said) == [{"field": "model", "value": "wan2.1-vace-1.3b", "asked": WAN}]
    last = paper.asked[-1]
    assert (last.width, last.height, last.num_frames) == (1280, 720, 81)


def test_nothing_helps_and_little_is_tried():
    paper = Paper(lambda exact: 30)
    said = paper.near(Request(model=WAN)).cards[0].near_miss
    assert said is not None and said.code == "nearest-none"
    assert "frames down to 1" in said.text and "wan2.1-t2v-1.3b" in said.text
    assert len(paper.asked) == 4  # the least frames, the least size, two siblings


def test_values_are_planned_once_for_all_cards_and_not_all_cards_are_looked_at():
    cards = tuple(f"c{at}" for at in range(MOST_CARDS + 2))
    paper = Paper(lambda exact: 21 * work(exact) if exact.model == WAN else 1, cards)
    answer = paper.near(Request(model=WAN, width=1280, height=720, num_frames=81))
    said = [row.near_miss.code for row in answer.cards if row.near_miss is not None]
    assert said == ["nearest"] * MOST_CARDS
    assert len(paper.asked) == len({exact.model_dump_json() for exact in paper.asked}) <= 20
    (note,) = [note for note in answer.notes if note.code == "nearest-looked"]
    assert note.args["others"] == 2


def test_a_job_that_cannot_be_made_is_no_answer():
    def peak(exact: ExactRequest) -> float:
        if exact.num_frames < 81:
            raise DryRunFailed("plan-no-facts")
        if exact.width < 1280:
            raise BadRequest("plan-bad-ram", ram=0)
        return 30

    said = Paper(peak).near(Request(model=WAN, width=1280, height=720)).cards[0].near_miss
    assert said is not None and said.code == "nearest-none"
