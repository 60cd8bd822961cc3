"""The short table shows every distinct answer once, the picks and the nearest misses."""

from __future__ import annotations

from cardfit.plan.answer import Recommended
from cardfit.report.selected import SHOWN_HOLDING, SHOWN_OTHERS, selected


def test_cards_that_say_the_same_are_counted_on_the_first(made):
    rows = made.cards()
    twins = tuple(
        rows[0].model_copy(update={"card": f"twin-{at}", "name": f"Twin {at}"}) for at in range(3)
    )
    shown = selected(made.answer((rows[0], *twins, *rows[1:])))
    (first,) = [each for each in shown if each.row.card == "rtx-4090"]
    assert first.alike == 3
    assert not [each for each in shown if each.row.card.startswith("twin")]


def test_a_pick_stands_for_its_kind(made):
    rows = made.cards()
    twin = rows[4].model_copy(update={"card": "cheaper", "name": "Cheaper"})
    shown = selected(made.answer((twin, *rows)))
    (pick,) = [each for each in shown if each.row.card == "rtx-4080"]
    assert pick.alike == 1
    assert "cheaper" not in [each.row.card for each in shown]


def test_the_nearest_miss_is_always_there_and_the_list_short(made):
    rows = tuple(
        made.row(f"big-{at}", f"Big {at}", 80 + at, 79.0, 20.0, price=1.0 + at) for at in range(30)
    ) + tuple(made.row(f"small-{at}", f"Small {at}", 8, 7.0, 8.0 + at) for at in range(30))
    none = Recommended(cheapest=None, fastest=None, safest=None)
    shown = [each.row.card for each in selected(made.answer(rows, recommended=none))]
    assert len(shown) <= SHOWN_HOLDING + SHOWN_OTHERS
    assert shown[0] == "big-0"
    assert shown[-1] == "small-0"


def test_few_cards_and_all_are_shown_as_they_are(made):
    rows = made.cards()
    assert [each.row for each in selected(made.answer(rows[:5]))] == list(rows[:5])
    assert len(selected(made.answer(), every=True)) == len(rows)
