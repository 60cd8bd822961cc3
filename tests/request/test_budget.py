"""The budget file: what it holds, and every fault named by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cardfit.errors import BadFile, BadRequest
from cardfit.request.budget import MAX_CHECKS, read_budget
from cardfit.units import GIB

GOOD = """\
settings: {offload: model}
requests:
  - {model: sdxl-base, width: 1024, card: l4, max_peak: 24GB, max_cost: {amount: 0.1, currency: USD}}
  - {model: svd, max_peak: 12 GiB, settings: {offload: none, vae_tiling: true}, allow_tight: true}
"""


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "budget.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_budget_is_read(tmp_path):
    found = read_budget(write(tmp_path, GOOD))
    first, second = found.requests
    assert (first.request.model, first.request.width, first.card) == ("sdxl-base", 1024, "l4")
    assert first.max_peak_bytes == 24 * GIB and second.max_peak_bytes == 12 * GIB
    assert found.settings_of(first).offload == "model"
    own = found.settings_of(second)
    assert (own.offload, own.vae_tiling) == ("none", True)
    assert "card" not in first.request.model_dump()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "found a nothing"),
        ("- a", "found a list"),
        ("requests: {}", "must be a list"),
        ("requests: [svd]", "line 1: found a text"),
        ("requests:\n  - {model: svd}", "line 2: nothing to check"),
        ("requests:\n  - {card: l4}", "model"),
        ("requests:\n  - {model: svd, card: l4, max_peek: 3}", "max_peak"),
        ("requests:\n  - {model: svd, max_peak: much}", "line 2: max_peak is much"),
        ("requests:\n  - {model: svd, max_peak: 0 GiB}", "max_peak is 0"),
        ("requests:\n  - {model: svd, max_peak: 9 GiB, max_seconds: 3}", "give card, too"),
        ("requests:\n  - {model: svd, card: l4, max_seconds: -1}", "more than 0"),
        ("requests:\n  - {model: svd, card: l4, max_cost: {amount: 1, currency: usd}}", "currency"),
        ("requests:\n  - {model: svd, card: l4, settings: {offload: gpu}}", "offload"),
        ("requests: [!!python/object:os.system {}]", "line 1"),
        ("requests:\n  - {model: svd, card: l4}\nmore: 1", "more"),
    ],
)
def test_a_fault_is_named(tmp_path, text, named):
    with pytest.raises((BadFile, BadRequest), match=named):
        read_budget(write(tmp_path, text))


def test_too_many_are_refused(tmp_path):
    many = "requests:\n" + "  - {model: svd, card: l4}\n" * (MAX_CHECKS + 1)
    with pytest.raises(BadFile, match="1001 requests; at most 1000"):
        read_budget(write(tmp_path, many))
