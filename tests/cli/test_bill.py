"""`cardfit plan` with a stated use, and for a machine in a file: the page, the JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cardfit.cli.main import run

# cheaper than any shipped offer
OFFERS = (
    "provider,card_id,gpus,price,currency,per,as_of,disk_gb_included,extra_disk_price_per_gb_month\n"
    "me,rtx-4090,1,0.036,USD,hour,2026-11-01,,0.10\n"
    "me,rtx-4090,1,20,USD,month,2026-11-01,,\n"
)


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """A question with offers of its own."""
    file = tmp_path / "offers.csv"
    file.write_text(OFFERS)
    words = "plan sdxl-base --offload none --card rtx-4090 --offers-file".split()
    return [*words, str(file)]


def test_the_bill_of_a_stated_use(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [*asked, "--outputs", "200/month", "--keep", "0.5", "--down", "1Gbit", "--boot", "100"]
    assert run(words) == 0
    said = capsys.readouterr()
    assert "200 accepted outputs on RTX 4090 at me:" in said.out
    (starting,) = [line for line in said.out.splitlines() if line.strip().startswith("starting")]
    assert starting.split()[-1] == "$0.001000"
    assert "Not known, so not counted: loading (--machine), idle (--idle-hours)" in said.out
    assert "$0.86 a day while it exists" in said.out
    assert "to download at 1 Gbit/s." in said.err
    assert run([*words, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    (row,) = body["cards"]
    lines = {each["name"]: each for each in row["cost"]["lines"]}
    assert row["offer"]["period"] == "hour"
    assert row["cost_per_output"] == row["cost"]["per_output"]
    assert row["cost"]["accepted_outputs"] == 200
    assert lines["load"]["amount"] is None and "load" in row["cost"]["not_counted"]
    known = [each["amount"]["amount"] for each in lines.values() if each["amount"]]
    assert sum(known) == pytest.approx(row["cost"]["total"]["amount"])
    hours = 400 * row["seconds"]["likely"] / 3600
    assert lines["generate"]["amount"]["amount"] == pytest.approx(0.036 * hours)
    assert body["download"]["assumed"] is False and body["download"]["bytes_per_s"] == 1.25e8
    assert row["export_seconds"]["likely"] > 0 and row["load_seconds"] is None


def test_without_a_use_there_is_no_bill_on_the_page(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(asked) == 0
    said = capsys.readouterr()
    assert "accepted outputs" not in said.out
    assert "500 Mbit/s, a rate that was assumed" in said.err


def test_a_month_is_the_bill_of_a_long_use(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*asked, "--hours-per-week", "160"]) == 0
    assert "RTX 4090 at me: $20.00," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--down 500", "--down 500: not a number above zero with a unit"),
        ("--down 0Mbit", "--down 0"),
        ("--keep 1.5", "--keep 1.5: it must be above zero and at most 1"),
        ("--boot -1", "--boot -1"),
        ("--disk-price free", "--disk-price free: not a number"),
        ("--disk-price 0.1EUR --egress-price 1USD", "two currencies"),
        ("--currency DOGE", "--currency DOGE"),
        ("--power 9999999", "--power"),
        ("--output-size 30", "--output-size 30"),
        ("--machine /no/machine.json", "/no/machine.json"),
    ],
)
def test_what_cannot_be_meant_is_named(
    asked: list[str], words: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*asked, *words.split()]) == 2
    said = capsys.readouterr()
    assert part in said.err and said.out == ""
