"""One card for a list of requests, on rows made by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cardfit.plan.answer import Seconds
from cardfit.plan.together import together

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).parents[1] / "report" / "make_answer.py"
)
assert _spec is not None and _spec.loader is not None
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)


def row(card: str, peak: float, price: float | None, seconds: float | None = None, **more: object):
    found = made.row(card, card.upper(), 24, 20, peak, price=price, settings=made.Settings())
    time = None if seconds is None else Seconds(low=seconds, likely=seconds, high=seconds)
    return found.model_copy(update={"seconds": time, **more})


def test_the_cheapest_by_the_hour_and_the_cheapest_for_the_list_may_differ():
    first = made.answer((row("slow", 10, 0.10, 100), row("fast", 10, 0.40, 10)))
    second = made.answer((row("slow", 12, 0.10, 200), row("fast", 12, 0.40, 20)))
    found = together([first, second], [3, 1])
    assert found.cheapest_hour is not None and found.cheapest_list is not None
    assert (found.cheapest_hour.card, found.cheapest_list.card) == ("slow", "fast")
    assert found.cheapest_list.seconds == 3 * 10 + 20
    assert found.cheapest_list.cost is not None
    assert found.cheapest_list.cost.amount == pytest.approx(0.40 * 50 / 3600)
    assert [each.code for each in found.said] == ["together-fit", "together-hour", "together-list"]


def test_a_card_must_fit_every_request_and_the_one_that_it_misses_is_named():
    first = made.answer((row("small", 10, 0.10), row("large", 10, 0.90)))
    second = made.answer((row("small", 25, 0.10), row("large", 12, 0.90)))
    found = together([first, second], [1, 1])
    assert [(each.card, each.verdict, each.number) for each in found.cards] == [
        ("large", "fits", 1),
        ("small", "does_not_fit", 2),
    ]
    assert found.cheapest_hour is not None and found.cheapest_hour.card == "large"
    assert found.cheapest_list is None  # no time can be told
    assert found.said[0].args == {"count": 1, "cards": 2}


def test_the_offer_is_that_of_the_hungriest_request():
    little, much = made.offer(0.1), made.offer(0.3)
    first = made.answer((row("a", 10, None, offer=little, host_bytes=1),))
    second = made.answer((row("a", 10, None, offer=much, host_bytes=2),))
    assert together([first, second], [1, 1]).cards[0].offer == much
    none = made.answer((row("a", 10, None, offer=None, host_bytes=3),))
    found = together([first, none], [1, 1])
    assert found.cheapest_hour is None
    assert [each.code for each in found.said] == ["together-fit", "together-no-offer"]


def test_nothing_fits_and_only_tight_are_said():
    tight = made.answer((row("a", 19.9, 0.1),))
    red = made.answer((row("a", 30, 0.1),))
    assert [each.code for each in together([tight], [1]).said] == ["together-tight"]
    assert [each.code for each in together([tight, red], [1, 1]).said] == ["together-none"]
