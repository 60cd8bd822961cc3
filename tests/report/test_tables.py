"""Lists and single pages of models, cards and offers, and their JSON."""

from __future__ import annotations

import json
from datetime import date

import pytest

from cardfit import api
from cardfit.report import dump, tables
from cardfit.report.style import Style


@pytest.mark.parametrize("width", [60, 100])
def test_no_list_is_wider_than_the_screen(width):
    style = Style(width=width)
    pages = [
        tables.models(api.models(), style),
        tables.cards(api.cards(), style),
        tables.offers(api.offers(), style, date(2026, 12, 1)),
        tables.card(api.cards()[0], style),
        tables.model(api.models()[0], style),
    ]
    for page in pages:
        assert max(map(len, page)) <= width


def test_every_entry_has_a_line_that_starts_with_its_id():
    style = Style()
    heads = {line.split()[0] for line in tables.models(api.models(), style) if line[0] != " "}
    assert {model.id for model in api.models()} <= heads
    heads = {line.split()[0] for line in tables.cards(api.cards(), style) if line[0] != " "}
    assert {card.id for card in api.cards()} <= heads


def test_a_missing_figure_prints_as_unknown_and_never_as_zero():
    from dataclasses import replace

    card = replace(api.cards()[0], bandwidth_bytes_per_s=None, memory_bytes=None, flop_per_s={})
    text = "\n".join(tables.card(card, Style()))
    assert "bandwidth" in text and "unknown" in text and " 0 GB/s" not in text


def test_an_empty_list_says_so():
    assert tables.offers([], Style(), date(2026, 12, 1)) == ["nothing to list"]


def test_json_lists_carry_a_schema_and_plain_numbers():
    body = json.loads(dump.many("cards", api.cards()))
    assert body["schema"] == "cardfit.cards/1"
    by_id = {card["id"]: card for card in body["cards"]}
    assert isinstance(by_id["rtx-4090"]["memory_bytes"], int)


def test_the_json_of_an_answer_has_the_keys_of_the_contract(answer):
    body = json.loads(dump.one(answer))
    assert body["schema"] == "cardfit.plan/1"
    contract = {"versions", "request", "settings", "stages", "peak", "rule_bytes", "cards"}
    assert contract | {"recommended", "notes"} <= body.keys()
    unknown = next(card for card in body["cards"] if card["card"] == "mi300x")
    assert unknown["peak_reserved_bytes"] is None
