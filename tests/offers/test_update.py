"""Newer prices: gpuhunt's items by hand, a catalog file in its layout, own tables, and what is refused.

``data/runpod.csv`` has the layout of a catalog file of gpuhunt 0.1.34; its prices are made up.
"""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Callable
from datetime import date
from enum import StrEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cardfit import cards, offers
from cardfit.errors import BadFile, InputError, MissingExtra
from cardfit.offers import gpuhunt, market
from cardfit.offers.update import update

TODAY = date(2026, 12, 1)
RECORDED = Path(__file__).with_name("data") / "runpod.csv"


class Vendor(StrEnum):
    NVIDIA = "nvidia"


def recorded() -> list[SimpleNamespace]:
    """The recorded rows as `gpuhunt.query()` returns them: typed, with None and an enum."""
    with RECORDED.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [
        SimpleNamespace(
            provider="runpod",
            instance_name=row["instance_name"],
            location=row["location"],
            price=float(row["price"]),
            cpu=int(row["cpu"]),
            memory=float(row["memory"]),
            gpu_count=int(row["gpu_count"]),
            gpu_name=row["gpu_name"] or None,
            gpu_memory=float(row["gpu_memory"]) if row["gpu_memory"] else None,
            spot=row["spot"] == "True",
            disk_size=float(row["disk_size"]) if row["disk_size"] else None,
            gpu_vendor=Vendor.NVIDIA if row["gpu_vendor"] else None,
            flags=[],
            provider_data={},
        )
        for row in rows
    ]


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CARDFIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "offers.csv"


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    def install(query: Callable[[], Any]) -> None:
        module = ModuleType("gpuhunt")
        module.query = query  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "gpuhunt", module)

    return install


def test_the_package_and_its_file_give_the_same_rows(package: Any) -> None:
    package(recorded)
    assert gpuhunt.query(cards.load(), TODAY) == gpuhunt.read(RECORDED, cards.load(), TODAY)


def test_the_cheapest_of_each_kind_with_the_price_of_the_whole_box(kept: Path) -> None:
    found = update(str(RECORDED), cards.load(), today=TODAY)
    assert (found.offers, found.cards) == (6, 4)
    assert found.left_out == {"card": 1, "no_gpu": 1, "price": 1}
    assert found.file == str(kept)
    mine = [each for each in offers.load(today=TODAY) if each.as_of == TODAY]
    assert {(each.card, each.gpus, each.price, each.spot) for each in mine} == {
        ("rtx-4090", 1, 0.34, False),
        ("rtx-4090", 1, 0.29, True),
        ("a100-pcie-80gb", 1, 1.39, False),
        ("a100-pcie-80gb", 8, 11.92, False),
        ("h100-nvl", 1, 2.79, False),
        ("rtx-a6000", 1, 0.33, False),
    }
    assert not any(each.own for each in mine)
    node = next(each for each in mine if each.gpus == 8)
    assert node.price_per_gpu == pytest.approx(1.49)
    a6000 = next(each for each in mine if each.card == "rtx-a6000")
    assert (a6000.ram_bytes, a6000.disk_included_bytes, a6000.vcpus) == (50 * 2**30, 120 * 10**9, 9)
    assert a6000.source == "gpuhunt, query of 2026-12-01"


def test_newer_prices_take_the_place_of_shipped_ones_of_that_provider_and_card() -> None:
    before = offers.load(today=TODAY)
    update(str(RECORDED), cards.load(), today=TODAY)
    after = offers.load(today=TODAY)

    def of(market: tuple[offers.Offer, ...], provider: str, card: str) -> set[date]:
        return {each.as_of for each in market if (each.provider, each.card) == (provider, card)}

    assert TODAY not in of(before, "runpod", "rtx-4090")
    assert of(after, "runpod", "rtx-4090") == {TODAY}
    assert of(after, "runpod", "l40s") == of(before, "runpod", "l40s") != set()
    assert of(after, "salad", "rtx-4090") == of(before, "salad", "rtx-4090") != set()


@pytest.mark.parametrize(
    ("name", "memory", "card"),
    [
        ("RTX4090", 24, "rtx-4090"),
        ("RTX4090", 48, "rtx-4090-48gb"),
        ("A6000", 48, "rtx-a6000"),
        ("RTX6000Ada", 48, "rtx-6000-ada"),
        ("RTX6000", 24, None),  # a Turing card of the same name
        ("RTX4070TiSUPER", 16, "rtx-4070-ti-super"),
        ("RTX4060Ti", 16, "rtx-4060-ti-16gb"),
        ("RTX4060Ti", 8, None),
        ("RTX3060", 12, "rtx-3060-12gb"),
        ("RTXPRO6000", 96, "rtx-pro-6000-blackwell-server"),
        ("RTXPRO4500", 32, "rtx-pro-4500-blackwell"),
        ("V100", 32, "v100-pcie-32gb"),
        ("A100", 40, "a100-pcie-40gb"),
        ("H100", 80, "h100-pcie"),
        ("H200NVL", 141, "h200-nvl"),
        ("H200", 141, "h200-sxm"),
        ("B300", 270, "b300"),
        ("GH200", 96, "gh200-96gb"),
        ("L4", 24, "l4"),
        ("L40S", 48, "l40s"),
        ("MI300X", 192, "mi300x"),
        ("A10G", 24, "a10g"),
        ("P100", 16, None),
    ],
)
def test_names_of_cards(name: str, memory: float, card: str | None) -> None:
    assert gpuhunt.card_of(name, memory, cards.load()) == card


def test_an_own_table_is_kept_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(
        "provider,card_id,gpus,price,currency,per,as_of\nme,l4,1,100,EUR,month,2026-11-01\n"
    )
    found = update(str(file), cards.load(), today=TODAY)
    assert found.offers == 1
    first = offers.load(today=TODAY)[0]
    assert (first.provider, first.price, first.currency, first.period) == (
        "me",
        100,
        "EUR",
        "month",
    )


@pytest.mark.parametrize(
    "text",
    [
        "provider,card_id,gpus,price,currency,per,as_of\nme,l4,1,-1,USD,hour,2026-11-01\n",
        "provider,card_id,gpus,price,currency,per,as_of\nme,l4,1,1,DOGE,hour,2026-11-01\n",
        "provider,card_id,gpus,price,currency,per,as_of\nme,l4,1,1,USD,week,2026-11-01\n",
        "provider,card_id,gpus,price,currency,per,as_of\nme,l44444,1,1,USD,hour,2026-11-01\n",
        "provider,card_id,gpus,price,currency,per,as_of\n",
        "instance_name,price,gpu_count,gpu_name,gpu_memory,spot\nx,1,1,GTX 1,1,False\n",
        "instance_name,price\nx,1\n",
        "",
    ],
)
def test_what_is_refused_leaves_what_was_kept(tmp_path: Path, kept: Path, text: str) -> None:
    update(str(RECORDED), cards.load(), today=TODAY)
    before = kept.read_bytes()
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(BadFile):
        update(str(file), cards.load(), today=TODAY)
    assert kept.read_bytes() == before
    assert [each.name for each in kept.parent.iterdir()] == ["offers.csv"]


def test_without_the_package_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with pytest.raises(MissingExtra, match="--from FILE"):
        update("gpuhunt", cards.load(), today=TODAY)


def test_a_collector_that_fails_is_one_sentence(package: Any, capsys: Any) -> None:
    def fails() -> None:
        logging.getLogger("gpuhunt._internal").error("a traceback")
        raise RuntimeError("no network")

    package(fails)
    with pytest.raises(InputError, match="no network"):
        update("gpuhunt", cards.load(), today=TODAY)
    assert capsys.readouterr().err == ""


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot be written"):
        update(str(RECORDED), cards.load(), today=TODAY, to=tmp_path / "file" / "offers.csv")


def test_the_columns_are_those_of_the_market() -> None:
    found = gpuhunt.read(RECORDED, cards.load(), TODAY)
    assert all(set(row) <= set(market.COLUMNS) for row in found.rows)
