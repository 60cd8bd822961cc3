"""Own files override, add, or fail by name of file, row and column; cards are found by any name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit import cards
from cardfit.cards import codecs, table
from cardfit.errors import BadFile, UnknownCard
from cardfit.units import MIB

Write = Callable[[str], Path]
CATALOG = cards.load()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "own.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("asked", "card_id"),
    [
        ("rtx-4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("rtx 4090 24GB", "rtx-4090"),
        ("4090 48GB", "rtx-4090-48gb"),
        ("4090 D", "rtx-4090-d"),
        ("A6000", "rtx-a6000"),
        ("RTX A6000", "rtx-a6000"),
        ("6000 Ada", "rtx-6000-ada"),
        ("L4", "l4"),
        ("L40", "l40"),
        ("L40S", "l40s"),
        ("A10", "a10"),
        ("A10G", "a10g"),
        ("Tesla T4", "t4"),
        ("3060", "rtx-3060-12gb"),
        ("4060Ti", "rtx-4060-ti-16gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("H200", "h200-sxm"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-blackwell-server"),
        ("RTX PRO 5000", "rtx-pro-5000-blackwell"),
        ("7900 XTX", "rx-7900-xtx"),
        ("DGX Spark", "gb10-dgx-spark"),
        ("  mi300x ", "mi300x"),
    ],
)
def test_people_name_cards_in_many_ways(asked: str, card_id: str) -> None:
    assert cards.find(CATALOG, asked).id == card_id


@pytest.mark.parametrize("card", CATALOG.values(), ids=lambda card: card.id)
def test_every_card_is_found_by_all_its_names(card: cards.Card) -> None:
    for name in (card.id, card.id.upper(), card.name, *card.aliases):
        assert cards.find(CATALOG, name) == card


@pytest.mark.parametrize("asked", ["H100", "A100", "A100 80GB", "V100", "RTX PRO 6000"])
def test_a_name_of_several_cards_picks_none(asked: str) -> None:
    with pytest.raises(UnknownCard) as caught:
        cards.find(CATALOG, asked)
    assert caught.value.code == "ambiguous-card"


def test_ambiguous_cards_are_all_named() -> None:
    with pytest.raises(UnknownCard, match=r"h100-pcie, h100-sxm, h100-nvl"):
        cards.find(CATALOG, "H100")


@pytest.mark.parametrize(
    ("asked", "near"), [("rtx-4099", "rtx-4090"), ("5060", "rtx-5060-ti-16gb"), ("l44", "l4")]
)
def test_a_near_miss_gets_a_suggestion(asked: str, near: str) -> None:
    with pytest.raises(UnknownCard, match=rf"{asked}: no such card. did you mean .*{near}"):
        cards.find(CATALOG, asked)


@pytest.mark.parametrize("asked", ["", "rtx", "-", "wombat", "x" * 10_000, "{names}"])
def test_a_name_of_nothing_is_refused(asked: str) -> None:
    with pytest.raises(UnknownCard) as caught:
        cards.find(CATALOG, asked)
    assert caught.value.code == "unknown-card"


def test_base_units() -> None:
    card = CATALOG["rtx-4090"]
    assert card.memory_bytes == 24564 * 1024**2
    assert card.bandwidth_bytes_per_s == 1008e9
    assert card.flop_per_s["fp16_fp32acc"] == 165.2e12
    assert (card.pcie_gen, card.pcie_lanes, card.tdp_w) == (4, 16, 450)
    assert CATALOG["mi300x"].compute_capability is None
    assert CATALOG["gb10-dgx-spark"].unified_memory
    assert hash(card) == hash(cards.load()["rtx-4090"])


def test_an_own_file_changes_only_what_it_names(write: Write) -> None:
    own = cards.load(write("id,vram_mib_reported,tdp_w\nrtx-4090,24000,\n"))
    assert own["rtx-4090"].memory_bytes == 24000 * MIB
    assert own["rtx-4090"].tdp_w == 450
    assert "own.csv" in own["rtx-4090"].source
    assert own["rtx-3090"] == CATALOG["rtx-3090"]
    assert cards.load()["rtx-4090"].memory_bytes == 24564 * MIB


def test_new_memory_drops_the_old_error_correction_figure(write: Write) -> None:
    own = cards.load(write("id,vram_mib_reported\nrtx-a6000,49140\n"))
    assert own["rtx-a6000"].memory_ecc_bytes is None


def test_an_own_file_adds_a_card(write: Write) -> None:
    text = "id,name,compute_capability,vram_mib_reported\nrtx-9090,GeForce RTX 9090,12.0,65000\n"
    own = cards.load(write(text))
    assert len(own) == len(CATALOG) + 1
    assert cards.find(own, "9090").memory_bytes == 65000 * MIB
    assert own["rtx-9090"].flop_per_s == {}
    assert cards.unverified_reason(own["rtx-9090"]) is None


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("name\nx\n", "table-missing-column", ("own.csv", "row 1", "id")),
        ("id,vram\nx,1\n", "table-unknown-column", ("own.csv", "vram", "vram_mib_reported")),
        ("id,id\nx,x\n", "table-double-column", ("own.csv", "id")),
        ("", "table-empty", ("own.csv", "id")),
        ("id,tdp_w\nl4,-5\n", "table-bad-cell", ("row 2", "tdp_w", "'-5'")),
        ("id,tdp_w\nl4,72\nt4,many\n", "table-bad-cell", ("row 3", "tdp_w", "many")),
        ("id,vram_mib_reported\nl4,0\n", "table-bad-cell", ("row 2", "vram_mib_reported")),
        ("id,mem_bandwidth_gb_s\nl4,nan\n", "table-bad-cell", ("row 2", "nan", "above zero")),
        ("id,mem_bandwidth_gb_s\nl4,inf\n", "table-bad-cell", ("row 2", "inf")),
        ("id,compute_capability\nl4,ada\n", "table-bad-cell", ("compute_capability", "8.9")),
        ("id,unified_memory\nl4,perhaps\n", "table-bad-cell", ("unified_memory", "yes")),
        ("id,tdp_w\nL 4!,1\n", "table-bad-cell", ("row 2", "id")),
        ("id,tdp_w\n,1\n", "table-bad-cell", ("row 2", "id")),
        ("id,tdp_w\nl4,72\nl4,73\n", "table-double-row", ("row 3", "l4")),
        ("id,tdp_w\nl4,72,1\n", "table-long-row", ("row 2",)),
        ('id,tdp_w\nl4,"7\n', "table-not-csv", ("own.csv",)),
        ("id,tdp_w\nl4,7\0\n", "table-not-text", ("own.csv",)),
    ],
)
def test_what_is_wrong_is_named(write: Write, text: str, code: str, words: tuple[str, ...]) -> None:
    with pytest.raises(BadFile) as caught:
        cards.load(write(text))
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value)


def test_files_that_are_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadFile, match="cannot be read"):
        cards.load(tmp_path / "missing.csv")
    with pytest.raises(BadFile, match="cannot be read"):
        cards.load(tmp_path)
    image = tmp_path / "image.csv"
    image.write_bytes(b"\x89PNG\r\n\xff\xfe")
    with pytest.raises(BadFile, match="UTF-8"):
        cards.load(image)
    monkeypatch.setattr(table, "MAX_FILE_BYTES", 10)
    image.write_bytes(b"id,tdp_w\nl4,72\n")
    with pytest.raises(BadFile, match="larger than"):
        cards.load(image)


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(b"\xef\xbb\xbfID,tdp_w\r\n\r\nl4,75\r\n")
    assert cards.load(path)["l4"].tdp_w == 75


@given(st.text(max_size=40))
def test_find_answers_or_says_unknown(name: str) -> None:
    try:
        card = cards.find(CATALOG, name)
    except UnknownCard as error:
        assert error.code in {"unknown-card", "ambiguous-card"}
    else:
        assert CATALOG[card.id] is card


def test_codecs_by_card_and_by_generation() -> None:
    assert codecs.supports(CATALOG["rtx-4090"], "nvenc", "av1") is True
    assert codecs.supports(CATALOG["rtx-4080-super"], "nvenc", "av1") is True  # by generation
    assert codecs.supports(CATALOG["rtx-3090"], "nvenc", "av1") is False
    assert codecs.supports(CATALOG["rtx-5090"], "nvenc", "hevc", chroma=422) is True
    assert codecs.supports(CATALOG["rtx-4090"], "nvenc", "hevc", chroma=422) is False
    assert codecs.supports(CATALOG["mi300x"], "nvenc", "h264") is None
    # the card's own rows say what it encodes, its generation's what it decodes
    assert codecs.supports(CATALOG["h100-sxm"], "nvdec", "h264") is True
