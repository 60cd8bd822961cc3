"""Picks, cautions and the order of rows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cardfit.plan.answer import Money, OfferRow
from cardfit.plan.make import make
from cardfit.plan.offers import best_offer, hourly, main_currency
from cardfit.plan.verdict import Host
from cardfit.request import Settings


def answer(fakes: SimpleNamespace, *targets: object, **options: object) -> object:
    given = options.pop("given", Settings())
    host = options.pop("host", Host())
    request = fakes.exact(**options.pop("request", {}))  # type: ignore[arg-type]
    return make(
        request, given, targets, host, fakes.knobs(), fakes.estimates(), fakes.facts(), **options
    )


def offer(amount: float, **changes: object) -> OfferRow:
    fields: dict[str, object] = {
        "provider": "somebody",
        "price": Money(amount=amount, currency="USD"),
        "period": "hour",
        "spot": False,
        "as_of": "2026-08-02",
        "age_days": 1,
        "ram_bytes": None,
        "source": "page",
    }
    return OfferRow.model_validate(fields | changes)


def test_a_month_is_730_hours() -> None:
    assert hourly(offer(730, period="month")) == pytest.approx(1.0)
    assert best_offer((offer(1.01), offer(730, period="month")), "USD", 0) == offer(
        730, period="month"
    )


def test_spot_only_where_nothing_else_is_offered() -> None:
    assert best_offer((offer(0.1, spot=True), offer(1)), "USD", 0) == offer(1)
    assert best_offer((offer(0.1, spot=True),), "USD", 0) == offer(0.1, spot=True)


def test_currencies_are_never_compared(fakes: SimpleNamespace) -> None:
    cards = [
        fakes.target("a", 60, price=2.0),
        fakes.target("b", 60, price=1.0, currency="EUR"),
        fakes.target("c", 60, price=3.0),
    ]
    assert main_currency(cards) == "USD"
    found = answer(fakes, *cards)
    assert found.recommended.cheapest.card == "a"
    codes = {note.code: note for note in found.notes}
    assert codes["plan-currencies"].args["currency"] == "USD"
    euros = answer(fakes, *cards, currency="EUR")
    assert euros.recommended.cheapest.card == "b"


def test_three_picks(fakes: SimpleNamespace) -> None:
    found = answer(
        fakes,
        fakes.target("holds-all", 62, price=3.0),  # 8 of 62 GiB to spare: more than a tenth
        fakes.target("just-holds-all", 55.1, price=2.0),
        fakes.target("offloads", 40, price=1.0),
        fakes.target("huge", 140, price=9.0),
    )
    picks = found.recommended
    assert picks.cheapest.card == "offloads"
    assert picks.cheapest.settings.offload == "model"
    assert picks.cheapest.why.text == "$1.00 an hour at somebody, the lowest of all that fit"
    assert picks.fastest is None
    assert "plan-no-seconds" in [note.code for note in found.notes]
    assert picks.safest.card == "holds-all"
    assert picks.safest.why.text == "8.0 GiB to spare at full precision"


def test_safest_with_little_room_takes_the_most(fakes: SimpleNamespace) -> None:
    found = answer(fakes, fakes.target("a", 55.1), fakes.target("b", 55.5))
    assert found.recommended.safest.card == "b"
    assert found.recommended.safest.why.code == "plan-safest-less"
    assert found.recommended.cheapest is None
    assert "plan-no-offer" in [note.code for note in found.notes]


def test_nothing_fits_recommends_nothing(fakes: SimpleNamespace) -> None:
    found = answer(fakes, fakes.target("small", 6, price=0.1))
    assert found.recommended.cheapest is found.recommended.safest is None
    assert "plan-nothing-fits" in [note.code for note in found.notes]


def test_rows_that_hold_it_stand_first_and_the_cheapest_of_them_leads(
    fakes: SimpleNamespace,
) -> None:
    found = answer(
        fakes,
        fakes.target("small", 6, price=0.1),
        fakes.target("dear", 60, price=5.0),
        fakes.target("unpriced", 60),
        fakes.target("cheap", 60, price=1.0),
        fakes.target("tight", 8.6, price=0.2),
    )
    assert [row.card for row in found.cards] == ["cheap", "dear", "unpriced", "tight", "small"]


def test_the_catch_is_a_decode_that_comes_last(fakes: SimpleNamespace) -> None:
    found = answer(fakes, fakes.target("card", 17.5, price=1.0))
    catch, ram = [note for note in found.notes if note.code.startswith("plan-catch")]
    # by block: decode 0.1 + 17, denoise 2.6 + 8
    assert catch.code == "plan-catch-decode-tiling"
    assert (catch.args["decode"], catch.args["denoise"]) == ("17.1 GiB", "10.6 GiB")
    assert (ram.code, ram.args["need"]) == ("plan-catch-ram", "37.0 GiB")
    tiled = answer(fakes, fakes.target("card", 11, price=1.0, ram_gib=64))
    assert not [note for note in tiled.notes if note.code.startswith("plan-catch")]


def test_the_catch_is_about_the_pick_alone(fakes: SimpleNamespace) -> None:
    # the tight card decodes tiled; the pick holds everything and decodes last: 37 + 17 against 37 + 8
    found = answer(fakes, fakes.target("tight", 8.6), fakes.target("large", 60, price=1.0))
    (catch,) = [note for note in found.notes if note.code.startswith("plan-catch")]
    assert catch.args == {"card": "LARGE", "decode": "54.0 GiB", "denoise": "45.0 GiB"}


def test_unknown_ram_is_said_with_the_need(fakes: SimpleNamespace) -> None:
    found = answer(fakes, fakes.target("card", 40, price=1.0), fakes.target("big", 60, price=2.0))
    (note,) = [note for note in found.notes if note.code == "plan-ram-unknown"]
    assert note.args == {"count": 1, "need": "37.0 GiB"}
    given = answer(fakes, fakes.target("card", 40, price=1.0), host=Host(fakes.gib(64)))
    assert "plan-ram-unknown" not in [note.code for note in given.notes]


def test_comfyui_is_told_that_these_are_diffusers_figures(fakes: SimpleNamespace) -> None:
    found = answer(fakes, fakes.target("card", 60), request={"runtime": "comfyui"})
    assert "plan-comfyui" in [note.code for note in found.notes]
    plain = answer(fakes, fakes.target("card", 60))
    assert "plan-comfyui" not in [note.code for note in plain.notes]
