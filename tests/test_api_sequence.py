"""The verb `sequence` on the real library and cards, over a dry run on paper."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

import cardfit
from cardfit.errors import BadRequest
from cardfit.library.models import Model
from cardfit.request import ExactRequest, Settings
from cardfit.request.mix import RequestsFile
from cardfit.trace.stream import Trace

_spec = importlib.util.spec_from_file_location(
    "small_traces", Path(__file__).parent / "plan" / "test_sequence.py"
)
assert _spec is not None and _spec.loader is not None
small = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small)


@pytest.fixture(autouse=True)
def on_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    def cached(
        model: Model, request: ExactRequest, settings: Settings, *, progress: object = None
    ) -> tuple[Trace, tuple[()]]:
        return replace(small.trace(request.width // 2), request=request), ()

    monkeypatch.setattr("cardfit.trace.source.traced", cached)


def mix(**more: object) -> RequestsFile:
    listed = [{"model": "sdxl-base", "width": width, "height": 1024} for width in (1024, 832)]
    return RequestsFile.model_validate({"requests": listed} | more)


def test_a_sequence_over_named_cards() -> None:
    found = cardfit.sequence(mix(), cards=["l4"])
    assert found.count == 2 and [row.count for row in found.requests] == [1, 1]
    assert [card.card for card in found.cards] == ["l4"]
    assert found.cards[0].verdict == "fits"
    assert found.settings.offload == "none"
    assert set(found.versions) == {"cardfit", "torch"}


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mix.yaml"
    file.write_text("requests:\n  - {model: sdxl-base, count: 3}\n", encoding="utf-8")
    found = cardfit.sequence(file)
    assert (found.count, found.cards) == (3, ())


def test_a_wrong_allocator_setting_is_named_before_any_dry_run() -> None:
    with pytest.raises(BadRequest, match="max_split_size_mb is 5; allowed: >= 21"):
        cardfit.sequence(mix(settings={"alloc_conf": "max_split_size_mb:5"}))
