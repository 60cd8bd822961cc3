"""The command and the verb: JSON on stdout, faults on stderr, exit codes."""

from __future__ import annotations

import json

import pytest

import cardfit
from cardfit.accuracy.rebuild import Why
from cardfit.cli.main import run
from cardfit.errors import MissingExtra
from cardfit.messages import TEXTS

SKIPPED = ({"id": "a", "framework": "official code"}, {"id": "b", "width": "wide"})


def test_json_is_the_versioned_answer(table, capsys):
    assert run(["accuracy", str(table(*SKIPPED)), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.accuracy/1"
    assert {row["id"]: row["why"] for row in body["skipped"]} == {
        "a": "other_runtime",
        "b": "bad_value",
    }
    bad = next(row for row in body["skipped"] if row["id"] == "b")
    assert (bad["row"], bad["column"], bad["detail"]) == (3, "width", "wide")
    assert body["rows"] == []
    assert body["summary"]["allocated"]["median_abs_pct"] is None


def test_the_page_says_why_on_stdout_and_where_on_stderr(table, capsys):
    assert run(["accuracy", str(table(*SKIPPED))]) == 0
    said = capsys.readouterr()
    assert "0 rows scored, 2 not" in said.out
    assert TEXTS["accuracy-why-other_runtime"] in said.out
    assert "row 3 (b), column width" in said.err


def test_a_wrong_header_is_bad_input(table, capsys):
    assert run(["accuracy", str(table({}, columns=("id", "model")))]) == 2
    assert "diffusers_pipeline" in capsys.readouterr().err


def test_the_command_has_help_and_its_answer_a_schema(capsys):
    assert run(["accuracy", "--help"]) == 0
    assert "cardfit accuracy benchmarks/data/measured.csv" in capsys.readouterr().out
    assert run(["schema", "accuracy"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["schema"]["default"]


def test_every_reason_has_words():
    assert [why for why in Why if f"accuracy-why-{why.value}" not in TEXTS] == []


def test_without_torch_the_extra_is_named(table, monkeypatch):
    def missing(**_):
        raise ModuleNotFoundError(name="torch")

    monkeypatch.setattr("cardfit.trace.cache.versions", missing)
    with pytest.raises(MissingExtra, match="torch"):
        cardfit.accuracy(table({}))
