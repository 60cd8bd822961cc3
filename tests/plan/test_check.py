"""A budget's verdict on rows made by hand, as a page, as JUnit and as Markdown."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cardfit.plan.answer import Money, Seconds
from cardfit.plan.check import Check, check_row, make_check
from cardfit.report import check as page
from cardfit.report.style import Style
from cardfit.request.budget import BudgetedRequest

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).parents[1] / "report" / "make_answer.py"
)
assert _spec is not None and _spec.loader is not None
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)


def codes(peak: float, limits: dict[str, object], **row: object) -> list[str]:
    found = made.row("l4", "NVIDIA L4", 24, 20, peak, price=0.4, settings=made.Settings())
    answer = made.answer((found.model_copy(update=row),))
    asked = BudgetedRequest.model_validate({"model": "svd", "card": "l4", **limits})
    return [each.code for each in check_row(1, asked, answer).violations]


TIME = Seconds(low=8, likely=10, high=12)
CENT = Money(amount=0.01, currency="USD")


@pytest.mark.parametrize(
    ("peak", "limits", "row", "broken"),
    [
        (10, {}, {}, []),
        (25, {}, {}, ["check-memory"]),
        (19.9, {}, {}, ["check-tight"]),
        (19.9, {"allow_tight": True}, {}, []),
        (25, {"allow_tight": True}, {}, ["check-memory"]),
        (10, {"max_seconds": 10}, {"seconds": TIME}, []),
        (10, {"max_seconds": 9.9}, {"seconds": TIME}, ["check-seconds"]),
        (10, {"max_seconds": 9.9}, {}, ["check-no-seconds"]),
        (10, {"max_cost": {"amount": 0.01, "currency": "USD"}}, {"cost_per_output": CENT}, []),
        (
            10,
            {"max_cost": {"amount": 0.009, "currency": "USD"}},
            {"cost_per_output": CENT},
            ["check-cost"],
        ),
        (
            10,
            {"max_cost": {"amount": 9, "currency": "EUR"}},
            {"cost_per_output": CENT},
            ["check-currency"],
        ),
        (10, {"max_cost": {"amount": 9, "currency": "EUR"}}, {}, ["check-no-cost"]),
        (25, {"max_seconds": 1}, {}, ["check-memory", "check-no-seconds"]),
    ],
)
def test_a_limit_is_kept_or_broken(peak, limits, row, broken):
    assert codes(peak, limits, **row) == broken


def test_a_card_without_a_verdict_never_passes():
    answer = made.answer((made.row("mi300x", "AMD Instinct MI300X", 192, 190, None),))
    asked = BudgetedRequest(model="svd", card="mi300x", allow_tight=True)
    row = check_row(1, asked, answer)
    assert (row.kept, row.verdict) == (False, "unknown")
    assert [each.code for each in row.violations] == ["plan-no-facts"]


def verdict() -> Check:
    good = made.answer((made.row("l4", "NVIDIA L4", 24, 20, 10, settings=made.Settings()),))
    bad = made.answer((made.row("l4", "NVIDIA L4", 24, 20, 30),))
    asked = [
        BudgetedRequest(model="svd", card="l4", name="fine"),
        BudgetedRequest(model="svd", card="l4", name="a | <b>&\x07", max_seconds=1),
    ]
    rows = [check_row(1, asked[0], good), check_row(2, asked[1], bad)]
    return make_check(rows, {"cardfit": "0.1.0"}, [])


def test_the_page_ends_with_the_sum():
    lines = page.lines(verdict(), Style())
    assert lines[-1] == "1 of 2 break a limit."
    assert any(line.strip().startswith("ok") for line in lines)


def test_junit_is_xml_with_a_failure_for_each_broken_limit():
    suite = ElementTree.fromstring(page.junit(verdict()))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == ["fine", "a | <b>& "]
    assert [len(case.findall("failure")) for case in cases] == [0, 2]


def test_markdown_is_a_table_whatever_a_name_holds():
    table = [line for line in page.markdown(verdict()).splitlines() if line.startswith("|")]
    assert len(table) == 4 and len({line.count("|") for line in table}) == 1
