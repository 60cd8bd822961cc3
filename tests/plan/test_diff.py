"""What differs between two answers, and files that are no answer."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from cardfit.errors import BadFile
from cardfit.plan.diff import MAX_ANSWER_BYTES, make_diff, read_answer
from cardfit.report import diff as page
from cardfit.report import dump
from cardfit.report.style import Style
from cardfit.request import Settings
from cardfit.units import GIB

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).parents[1] / "report" / "make_answer.py"
)
assert _spec is not None and _spec.loader is not None
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)


def test_an_answer_does_not_differ_from_itself_saved_and_read(tmp_path):
    answer = made.answer()
    file = tmp_path / "a.json"
    file.write_text(dump.one(answer), encoding="utf-8")
    found = make_diff(answer, read_answer(file))
    assert found.same and page.lines(found, Style()) == ["No difference."]


def test_what_moved_is_said_in_words_and_kept_exact():
    before = made.answer()
    stages = (*before.stages[:2], made.stage("decode", "vae", 57.8, 20.4, 2.4))
    rows = tuple(
        made.row("rtx-4080", "NVIDIA GeForce RTX 4080", 16, 15.2, 15.9)
        if row.card == "rtx-4080"
        else row
        for row in before.cards[:-1]
    )
    after = made.answer(
        rows,
        stages=stages,
        versions={**before.versions, "torch": "2.14.0"},
        settings=Settings(offload="none"),
    )
    found = make_diff(before, after)
    assert not found.same
    (stage,) = found.stages
    assert stage.after_bytes - stage.before_bytes == round(20.4 * GIB) - round(17.6 * GIB)
    lines = page.lines(found, Style())
    text = "\n".join(lines)
    assert "decode +2.8 GiB (77.8 GiB to 80.6 GiB)" in text
    assert "RTX 4080: fits to does not fit" in text
    assert f"{before.cards[-1].name.removeprefix('NVIDIA ')}: only in the first" in text
    assert "torch: 2.13.0 to 2.14.0" in text
    assert "offload: - to none" in text
    assert found.peak is None  # it was not changed by hand


def test_the_other_way_round_has_the_other_sign():
    before = made.answer()
    after = made.answer(stages=before.stages[:2])
    there, back = make_diff(before, after), make_diff(after, before)
    assert [each.text.code for each in there.stages] == ["diff-only-before"]
    assert [each.text.code for each in back.stages] == ["diff-only-after"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("not json", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "schema -"),
        ('{"schema": "cardfit.matrix/1"}', r"schema cardfit\.matrix/1; an answer of plan is"),
        ('{"schema": "cardfit.plan/1"}', "versions is missing or wrong"),
    ],
)
def test_a_file_that_is_no_answer_is_named(tmp_path, text, named):
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=named):
        read_answer(file)


def test_a_damaged_answer_names_the_field(tmp_path):
    body = json.loads(dump.one(made.answer()))
    body["stages"][1]["reserved_bytes"] = "much"
    file = tmp_path / "a.json"
    file.write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(BadFile, match=r"stages\.1\.reserved_bytes"):
        read_answer(file)


def test_a_large_or_missing_file_is_refused(tmp_path):
    file = tmp_path / "a.json"
    with file.open("wb") as stream:
        stream.truncate(MAX_ANSWER_BYTES + 1)
    with pytest.raises(BadFile, match=str(MAX_ANSWER_BYTES)):
        read_answer(file)
    with pytest.raises(BadFile, match="cannot be read"):
        read_answer(tmp_path / "none.json")
