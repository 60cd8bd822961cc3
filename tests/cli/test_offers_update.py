"""`cardfit offers update` and the columns of `cardfit cards`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cardfit.cli.main import run

RECORDED = Path(__file__).parents[1] / "offers" / "data" / "runpod.csv"


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CARDFIT_CACHE", str(tmp_path))


def test_update_says_what_it_kept_and_what_it_left_out(capsys, tmp_path):
    assert run(["offers", "update", "--from", str(RECORDED)]) == 0
    said = capsys.readouterr()
    assert "6 offers for 4 cards" in said.out and "catalog does not hold" in said.err
    assert (tmp_path / "offers.csv").exists()
    assert run(["offers", "--card", "h100-nvl"]) == 0
    assert "gpuhunt" in capsys.readouterr().out
    assert run(["offers", "update", "--from", str(RECORDED), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.offers-update/1" and body["left_out"]["card"] == 1


def test_the_table_marks_old_prices_and_shows_a_gpus_share_of_a_box(capsys, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text(
        "provider,card_id,gpus,price,currency,per,as_of,spot\nme,l4,8,4.0,EUR,hour,2020-01-01,yes\n"
    )
    assert run(["offers", "--card", "l4", "--offers-file", str(mine)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if " me " in line)
    assert "8 x l4" in row and "4.00 EUR/h spot" in row and "0.50 EUR" in row and "old, " in row


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["offers", "update"], "--from gpuhunt"),
        (["offers", "--from", "gpuhunt"], "--from"),
        (["offers", "update", "--from", "missing.csv"], "missing.csv"),
        (["offers", "update", "--from", "x.csv", "--card", "l4"], "--card"),
        (["offers", "renew"], "renew"),
    ],
)
def test_bad_updates(capsys, words, part):
    assert run(words) == 2
    said = capsys.readouterr()
    assert part in said.err and said.out == ""


def test_without_gpuhunt_the_extra_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    assert run(["offers", "update", "--from", "gpuhunt"]) == 2
    assert "cardfit[prices]" in capsys.readouterr().err


def test_cards_show_what_a_price_buys_and_which_matters(capsys):
    assert run(["cards"]) == 0
    said = capsys.readouterr()
    head = said.out.splitlines()[0]
    assert "GB/s /1" in head and "TFLOP/s /1" in head and "balance" in head
    assert max(map(len, said.out.splitlines())) <= 100
    assert "bound by tensor throughput, unlike LLM decoding" in " ".join(said.err.split())


def test_the_figures_are_the_cards_over_its_cheapest_price(capsys, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text(
        "provider,card_id,gpus,price,currency,per,as_of\n"
        "me,rtx-4090,2,1.0,EUR,hour,2026-11-01\nme,l4,1,365,EUR,month,2026-11-01\n"
    )
    assert run(["cards", "--offers-file", str(mine), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    worth = {each["card"]: each for each in body["worth"]}
    assert worth["l4"]["offer"]["price"] == {"amount": 365.0, "currency": "EUR"}
    assert worth["l4"]["bytes_per_s_per_price"] == pytest.approx(300.1e9 / 0.5)
    assert body["matters"]["code"] == "cost-matters" and body["flop_per_byte"] is None


def test_a_model_says_it_for_itself(capsys, monkeypatch):
    monkeypatch.setattr("cardfit.api.trace", lambda model, **more: model)
    monkeypatch.setattr("cardfit.plan.cost.denoise_work", lambda trace: (170e12, 1e12))
    assert run(["cards", "--model", "sd-turbo"]) == 0
    said = capsys.readouterr()
    rows = {line.split()[0]: line.split()[-1] for line in said.out.splitlines()}
    assert (rows["rtx-4090"], rows["h100-sxm"]) == ("tensor", "bandwidth")
    assert "170 FLOPs per byte" in " ".join(said.err.split())
    assert run(["cards", "l4", "--model", "sd-turbo"]) == 2
