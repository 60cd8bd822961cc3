"""Models x cards: the best precision each card holds."""

from __future__ import annotations

from types import SimpleNamespace

from cardfit.plan.matrix import Entry, Matrix, cheapest_first, row, rule_precision
from cardfit.plan.verdict import Host
from cardfit.request import Settings


def entry(fakes: SimpleNamespace, bfloat16: bool = False) -> Entry:
    return Entry(
        model=fakes.facts().model,
        request=fakes.exact(),
        knobs=fakes.knobs(),
        estimates=fakes.estimates(),
        rule_bytes=fakes.gib(42.55),
        bfloat16=bfloat16,
        settings=Settings(),
    )


def test_the_best_precision_wins(fakes: SimpleNamespace) -> None:
    sizes = {"all": 56, "offload": 35, "bits8": 20.6, "bits4": 17, "none": 10}
    targets = [fakes.target(name, size) for name, size in sizes.items()]
    found = {cell.card: cell for cell in row(entry(fakes), targets, Host()).cells}
    assert (found["all"].precision, found["all"].offload, found["all"].grade) == (
        "full",
        "none",
        "green",
    )
    assert (found["offload"].precision, found["offload"].offload) == ("full", "model")
    assert found["offload"].grade == "amber"
    # int8, one at a time: max(5 + 1, 13 + 8, 1 + 17) = 21; nf4: max(3.5, 14.5, 18) = 18
    assert found["bits8"].precision == "4-bit"
    assert found["bits4"].precision is None
    assert found["bits4"].verdict == "does_not_fit"
    assert found["none"].why.args["over"] == "8.0 GiB"


def test_eight_bits_beat_four(fakes: SimpleNamespace) -> None:
    (cell,) = row(entry(fakes), [fakes.target("a", 22)], Host()).cells
    assert (cell.precision, cell.offload, cell.price_of_it) == (
        "8-bit",
        "model",
        ("slower", "lossy"),
    )
    assert cell.headroom_bytes == fakes.gib(1)
    assert cell.why.text == "8 bits, model offload: 1.0 GiB to spare"


def test_the_rule_reckons_with_weights_alone(fakes: SimpleNamespace) -> None:
    rule = fakes.gib(42.55)
    assert rule_precision(rule, fakes.gib(43)) == "full"
    assert rule_precision(rule, fakes.gib(24)) == "8-bit"
    assert rule_precision(rule, fakes.gib(11)) == "4-bit"
    assert rule_precision(rule, fakes.gib(10)) is None


def test_old_and_unverified_cards_say_why(fakes: SimpleNamespace) -> None:
    old = fakes.target("old", 60, capability=7.5)
    blank = fakes.target("blank", 60, total=None, context=None)
    cells = row(entry(fakes, bfloat16=True), [old, blank], Host()).cells
    assert [(cell.verdict, cell.why.code) for cell in cells] == [
        ("does_not_fit", "plan-no-bfloat16"),
        ("unknown", "plan-no-facts"),
    ]


def test_the_cheapest_card_stands_first(fakes: SimpleNamespace) -> None:
    targets, columns = cheapest_first(
        [
            fakes.target("unpriced", 60),
            fakes.target("dear", 60, price=2.0),
            fakes.target("monthly", 60, price=730.0, period="month"),
        ]
    )
    assert [each.card for each in targets] == ["monthly", "dear", "unpriced"]
    table = Matrix(versions={}, cards=columns, rows=(row(entry(fakes), targets, Host()),), notes=())
    assert [cell.card for cell in table.rows[0].cells] == [each.card for each in table.cards]
    assert Matrix.model_validate_json(table.model_dump_json(by_alias=True)) == table
