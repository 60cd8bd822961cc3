"""What providers do with stopped machines: the table is held to rules, unknown is never yes or no."""

from __future__ import annotations

import pytest

from cardfit import offers
from cardfit.errors import BadRequest
from cardfit.offers import providers


def test_every_provider_of_the_shipped_offers_has_a_row() -> None:
    named = {each.provider for each in offers.market._shipped()} - {"unnamed"}
    assert named <= set(providers.load())


def test_a_known_fact_has_a_source_and_an_unknown_one_a_question() -> None:
    for each in providers.load().values():
        known = set(providers.ASK) - set(each.unknown)
        assert (each.source == "unknown") == (not known), each.provider
        assert len(each.questions()) == len(each.unknown)
        assert all(each.provider in note.text and "?" in note.text for note in each.questions())
        priced = each.disk_price_per_gb_month or each.disk_price_stopped_per_gb_month
        assert (each.currency is None) == (priced is None)


def test_what_runpod_says_by_hand() -> None:
    found = providers.find(providers.load(), "RunPod")
    assert (found.can_stop, found.gpu_billed_while_stopped) == (True, False)
    assert (found.disk_price_per_gb_month, found.disk_price_stopped_per_gb_month) == (0.10, 0.20)
    assert found.unknown == ("egress_billed",)


def test_it_agrees_with_the_offers() -> None:
    table = providers.load()
    for each in offers.market._shipped():
        if each.charged_while_stopped is not None:
            assert table[each.provider].disk_billed_while_stopped == each.charged_while_stopped


def test_an_unknown_provider_gets_a_suggestion() -> None:
    with pytest.raises(BadRequest, match="runpod"):
        providers.find(providers.load(), "runpood")
