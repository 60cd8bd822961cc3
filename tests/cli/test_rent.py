"""The command `rent`: words to figures, the page, JSON, charts, and refusals in one sentence."""

from __future__ import annotations

import json
import re
import sys

import pytest

import cardfit
from cardfit.cli.main import run
from cardfit.cli.rent import RentFlags, question_from
from cardfit.plan.rent_question import FLAGS

QUOTES = (
    "rent --monthly 286 --hourly 0.45 --disk 0.07 --down 500Mbit --hours-per-week 20 --term 3mo --vat 21 "
    "--library 400GB --api-price 0.04 --own-price 1800 --own-power 350W --own-life 3y --energy-price 0.30 "
    "--outputs 400/month --seconds 60"
).split()


def test_every_flag_is_read_into_base_units():
    asked = question_from(
        RentFlags(
            monthly="286 EUR",
            hourly="€0.45",
            down_bytes_per_s="500Mbit",
            library_bytes="400GB",
            term_months="3mo",
            own_life_months="3y",
            own_power_w="350W",
            vat_percent="21%",
            outputs_per_month="400/month",
            seconds="60",
            hours_per_week="20",
            keep_rate="0.8",
        )
    )
    assert (asked.monthly, asked.hourly, asked.currency) == (286, 0.45, "EUR")
    assert (asked.down_bytes_per_s, asked.library_bytes) == (62.5e6, 400 * 10**9)
    assert (asked.term_months, asked.own_life_months, asked.own_power_w) == (3, 36, 350)
    assert (asked.vat_percent, asked.outputs_per_month, asked.keep_rate) == (21, 400, 0.8)


def test_the_page_starts_with_the_verdict_and_keeps_to_the_screen(capsys):
    assert run(QUOTES) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "Don't rent: use the API."
    assert lines[1].startswith("Why")
    assert max(map(len, [*lines, *said.err.splitlines()])) <= 100
    for part in ("573 hours a month (132 a week)", "$13.07 a day while it exists", "hours lost"):
        assert part in " ".join(said.out.split())
    assert "Ask before renting" in said.err and "VAT of 21 %" in said.err


def test_an_open_use_is_not_decided_and_still_answered(capsys):
    assert run("rent --monthly 286 --hourly 0.45 --disk 0.07 --library 400GB".split()) == 0
    out = capsys.readouterr().out
    assert out.startswith("Not decided.") and "573 hours" in out


def test_json_is_typed_and_is_what_python_returns(capsys):
    assert run([*QUOTES, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.rent/1"
    found = cardfit.rent(
        monthly=286,
        hourly=0.45,
        disk_per_gb_month=0.07,
        down_bytes_per_s=62.5e6,
        hours_per_week=20,
        term_months=3,
        vat_percent=21,
        library_bytes=400 * 10**9,
        api_price=0.04,
        own_price=1800,
        own_power_w=350,
        own_life_months=36,
        energy_price_per_kwh=0.30,
        outputs_per_month=400,
        seconds=60,
    )
    assert body == found.model_dump(mode="json", by_alias=True)
    assert body["verdict"]["rent"] is False
    assert [option["way"] for option in body["options"]] == [
        *("monthly", "hourly_stop", "hourly_destroy", "api", "own")
    ]


def test_it_has_a_schema(capsys):
    assert run(["schema", "rent"]) == 0
    assert "break_even" in json.loads(capsys.readouterr().out)["properties"]


def test_every_flag_is_in_the_help(capsys):
    assert run(["rent", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(flag in out for flag in FLAGS.values())


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("rent", "No price was given"),
        ("rent --monthly -5", "--monthly -5: it must be above zero"),
        ("rent --hourly 0", "--hourly 0: it must be above zero"),
        ("rent --hourly 1e9", "at most 1,000 USD"),
        ("rent --hourly nan", "--hourly nan"),
        ("rent --hourly cheap", "not a number"),
        ("rent --hourly 1 --library 400", "--library 400GB"),
        ("rent --hourly 1 --library 400XB", "--library 400GB"),
        ("rent --hourly 1 --down 500", "--down 500Mbit"),
        ("rent --monthly 286 --term 3fortnights", "--term 3mo"),
        ("rent --monthly 286 --currency DOGE", "--currency DOGE: the currency is not known"),
        ("rent --monthly 286DOG", "--monthly 286DOG: the currency"),
        ("rent --monthly 286EUR --hourly $1", "Nothing is converted"),
        ("rent --monthly 286EUR --currency USD", "Nothing is converted"),
        ("rent --monthly 0.45 --hourly 286", "swapped"),
        ("rent --card rtx-4091", "did you mean rtx-4090"),
        ("rent --hourly 1 --hours-per-week 200", "at most 168 h"),
        ("rent --hourly 1 --outputs 0", "--outputs 40/month"),
        ("rent --hourly 1 --provider runpodd", "runpod"),
        ("rent --hourly 1 --chart x.jpg", ".png, .svg or .html"),
        ("rent --hourly 1 --offers-file missing.csv", "missing.csv"),
    ],
)
def test_bad_input_is_two_with_the_next_step(capsys, words, part):
    assert run(words.split()) == 2
    said = capsys.readouterr()
    assert part in said.err and "Traceback" not in said.err and said.out == ""


def test_charts_are_drawn_by_their_ending(tmp_path, capsys):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<svg"), ("a.html", b"<!DOCTYPE html>")):
        file = tmp_path / name
        assert run([*QUOTES, "--chart", str(file)]) == 0
        assert file.read_bytes().lstrip().startswith(start)
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "hourly with destroy" in svg and "USD a month" in svg
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert not re.search(
        r"<(script|link|img)[^>]+(src|href)\s*=\s*.?https?:", page
    )  # opens without a network
    assert run([*QUOTES, "--chart", str(tmp_path / "a.png")]) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*QUOTES, "--chart", str(tmp_path / "a.png"), "--force"]) == 0


def test_a_chart_without_its_packages_names_the_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    assert run([*QUOTES, "--chart", str(tmp_path / "a.png")]) == 2
    assert "cardfit[web]" in capsys.readouterr().err and not (tmp_path / "a.png").exists()
