"""Screens: encodings, widths, bars, grids."""

from __future__ import annotations

import io

import pytest

from cardfit.report import out
from cardfit.report.grid import Column, grid, hanging
from cardfit.report.style import LETTERS, SHAPES, Style, can_encode, cells


class Stream(io.TextIOWrapper):
    def __init__(self, encoding):
        super().__init__(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "shapes"), [("utf-8", True), ("cp949", False), ("cp1252", False), ("ascii", False)]
)
def test_shapes_only_where_the_encoding_has_all_of_them(encoding, shapes):
    assert Style.of(Stream(encoding)).shapes is shapes


def test_letters_and_shapes_name_the_same_verdicts():
    assert SHAPES.keys() == LETTERS.keys()
    assert len(set(LETTERS.values())) == len(LETTERS)


def test_a_pipe_is_100_columns_without_bars():
    style = Style.of(Stream("utf-8"))
    assert (style.width, style.bars, style.colour) == (100, False, False)


@pytest.mark.parametrize("encoding", ["ascii", "cp949", "cp1252", "utf-8"])
def test_writing_never_fails_on_an_encoding(encoding):
    stream = Stream(encoding)
    out.write(["● fits · 1280x720", "한국"], stream)
    stream.seek(0)
    assert "fits" in stream.read()


def test_wide_signs_take_two_columns():
    lines = grid([Column("a"), Column("b")], [["카드", "x"], ["card", "y"]], Style(), indent=0)
    assert [cells(line) for line in lines[1:]] == [7, 7]


def test_a_bar_is_as_long_as_its_share():
    style = Style()
    assert style.bar(1, 4, 8) == "██░░░░░░"
    assert style.bar(5, 4, 8).endswith(">")


def test_a_wide_column_wraps_before_one_is_dropped():
    columns = [Column("id"), Column("text", least=10), Column("price")]
    lines = grid(columns, [["a", "one two three four five", "$1.00/h"]], Style(width=30), indent=0)
    assert "price" in lines[0] and len(lines) > 2
    narrow = grid(columns, [["a", "one two three four five", "$1.00/h"]], Style(width=16), indent=0)
    assert "price" not in narrow[0]


def test_a_cut_column_keeps_its_ends_on_one_line():
    columns = [Column("id"), Column("at", least=10, cut=True)]
    lines = grid(columns, [["a", "transformer.blocks.12.ffn"]], Style(width=16), indent=0)
    assert len(lines) == 2 and lines[1].startswith("a   trans..") and lines[1].endswith("ffn")


def test_hanging_text_is_indented():
    assert hanging("Note", "a b", 12) == ["Note      a", "          b"]


def test_can_encode_knows_no_encoding():
    assert not can_encode("●", None) and not can_encode("●", "no-such")
