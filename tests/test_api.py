"""The public verbs on the real library, cards and offers, over a dry run and a memory model on paper."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cardfit import api
from cardfit.cards import detect
from cardfit.errors import BadRequest, DryRunFailed, MissingExtra, Note, UnknownCard, UnknownModel
from cardfit.library.models import Model
from cardfit.predict.estimate import MemoryEstimate, StageMemory
from cardfit.request import ExactRequest, Request, Settings
from cardfit.trace.stream import Component, Module, Trace
from cardfit.units import GIB

WAN = "wan2.1-t2v-14b"
WORKING = {"denoise": 8 * GIB, "decode": 17 * GIB}
TILED = {"denoise": 8 * GIB, "decode": 4 * GIB}


def _trace(model: Model, request: ExactRequest, settings: Settings) -> Trace:
    components = tuple(
        Component(
            name,
            "Fake",
            spec.recommended_dtype,
            (Module("", "Linear", (("weight", 2 * spec.params, "bfloat16"),)),),
        )
        for name, spec in model.components.items()
        if spec.counted
    )
    return Trace(
        request=request,
        settings=settings,
        versions={"torch": "2.13.0"},
        pipeline=model.pipeline,
        offload_sequence=(),
        components=components,
        recasts=(),
        stages=(),
        streams=(),
        timeline=(),
        sites=(),
    )


def _estimate(
    trace: Trace,
    settings: Settings,
    *,
    architecture: str | None = None,
    limit_bytes: int | None = None,
) -> MemoryEstimate:
    sizes = {each.name: each.weights_bytes for each in trace.components}
    resident = sum(sizes.values()) if settings.offload == "none" else max(sizes.values())
    if settings.quantization:
        resident //= 2
    working = TILED if settings.vae_tiling else WORKING
    stages = tuple(
        StageMemory(
            name=name,
            component="transformer",
            calls=1,
            weights_bytes=resident,
            activation_bytes=size,
            allocated_bytes=resident + size,
            reserved_bytes=resident + size,
            low_bytes=resident + size,
            high_bytes=resident + size,
            basis="traced",
            site="",
        )
        for name, size in working.items()
    )
    peak = max(stages, key=lambda each: each.reserved_bytes)
    return MemoryEstimate(
        stages=stages,
        peak_stage=peak.name,
        allocated_bytes=peak.allocated_bytes,
        reserved_bytes=peak.reserved_bytes,
        reserved_low_bytes=peak.reserved_bytes,
        reserved_high_bytes=peak.reserved_bytes,
        host_bytes=0 if settings.offload == "none" else sum(sizes.values()),
        failure=None,
        left_out=(),
    )


def _kept(replay: Any, model: Model, trace: Trace, settings: Settings, **more: Any) -> Any:
    """Nothing is kept."""
    return replay(trace, settings, **more)


def _module(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture(autouse=True)
def on_paper(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """No torch, no dry run; what is returned collects the settings that were traced."""
    traced: list[Settings] = []

    def cached(
        model: Model, request: ExactRequest, settings: Settings, *, progress: Any = None
    ) -> tuple[Trace, tuple[Note, ...]]:
        traced.append(settings)
        return _trace(model, request, settings), ()

    monkeypatch.setattr("cardfit.trace.source.traced", cached)
    _module(monkeypatch, "cardfit.predict.memory", estimate=_estimate)
    _module(monkeypatch, "cardfit.predict.store", kept=_kept)
    _module(
        monkeypatch,
        "cardfit.predict.disk",
        disk_parts=lambda model, request: {"weights": 80 * GIB},
        second_copy_bytes=lambda model, os: 80 * GIB if os == "windows" else 0,
    )

    def weights(trace: Trace) -> int:
        return sum(each.weights_bytes for each in trace.components)

    _module(
        monkeypatch,
        "cardfit.predict.rule",
        rule_of_thumb_bytes=lambda trace: round(1.15 * weights(trace)),
        denoiser_rule_bytes=lambda trace: round(
            1.15 * trace.component("transformer").weights_bytes
        ),
    )
    return traced


def test_a_plan_covers_the_whole_catalog(on_paper: list[Settings]) -> None:
    found = api.plan(WAN)
    assert {row.card for row in found.cards} == {card.id for card in api.cards()}
    assert found.request.num_frames == 81
    assert found.model.license == "Apache-2.0"
    # one trace as it is, one tiled; offload and quantization make none
    assert [each.vae_tiling for each in on_paper] == [False, True]
    verdicts = {row.card: row.verdict for row in found.cards}
    assert verdicts["h200-sxm"] == "fits"
    assert verdicts["mi300x"] == "unknown"
    assert verdicts["t4"] == "does_not_fit"
    assert found.recommended.cheapest is not None


def test_verdicts_follow_from_the_figures_of_their_rows() -> None:
    for row in api.plan(WAN).cards:
        if row.peak_reserved_bytes is None or row.usable_bytes is None:
            continue
        assert row.headroom_bytes == row.usable_bytes - row.peak_reserved_bytes
        assert (row.verdict in ("fits", "tight")) == (row.headroom_bytes >= 0)


def test_named_cards_only_and_once() -> None:
    found = api.plan(WAN, cards=["RTX A6000", "l4", "rtx-a6000"])
    assert sorted(row.card for row in found.cards) == ["l4", "rtx-a6000"]


def test_the_readers_own_offer_is_used_and_its_currency_leads(tmp_path: Path) -> None:
    offers = tmp_path / "offers.csv"
    offers.write_text(
        "provider,card_id,gpus,price,currency,per,as_of\nhome,l4,1,0.10,EUR,hour,2026-01-02\n"
    )
    found = api.plan(WAN, cards=["l4", "h200-sxm"], offers_file=offers)
    row = next(row for row in found.cards if row.card == "l4")
    assert row.offer is not None
    assert (row.offer.provider, row.offer.price.currency) == ("home", "EUR")
    assert "plan-currencies" in [note.code for note in found.notes]


def test_the_rules_of_the_model_speak() -> None:
    found = api.plan(Request(model=WAN, num_frames=80), cards=["l4"])
    assert found.request.num_frames == 81
    assert "frames-become" in [note.code for note in found.notes]


def test_bad_input() -> None:
    with pytest.raises(UnknownModel, match=r"wan2\.1-t2v-14b"):
        api.plan("wan-14b")
    with pytest.raises(UnknownCard):
        api.plan(WAN, cards=["rtx-99999"])
    with pytest.raises(BadRequest, match="above zero"):
        api.plan(WAN, ram_bytes=0)
    with pytest.raises(BadRequest, match="above zero"):
        api.plan(WAN, outputs_per_month=-1)
    with pytest.raises(BadRequest, match="169 hours a week"):
        api.plan(WAN, hours_per_week=169)
    with pytest.raises(BadRequest):
        api.plan(WAN, Settings(dtype={"unet": "float16"}))


def _without_torch(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def cached(*args: object, **kwargs: object) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("cardfit.trace.source.traced", cached)


def test_a_missing_extra_is_one_sentence_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_torch(monkeypatch, "diffusers.models")
    with pytest.raises(MissingExtra, match=r"needs diffusers.*pip install 'cardfit\[trace\]'"):
        api.plan(WAN)
    _without_torch(monkeypatch, "something_else")
    with pytest.raises(ModuleNotFoundError):
        api.trace(WAN)


def test_trace_settles_the_open_settings(on_paper: list[Settings]) -> None:
    found = api.trace(WAN, Settings(offload="model", vae_tiling=True))
    assert found.request.width == 1280
    assert (on_paper[0].offload, on_paper[0].vae_tiling) == (None, True)


def _machine(catalog: Any, *, used_bytes: int, limit_bytes: int | None) -> detect.Machine:
    card = catalog["rtx-4090"]
    device = detect.Device(0, card.name, card.memory_bytes, used_bytes, None, None, None)
    return detect.Machine((card,), (device,), 64 * GIB, limit_bytes, None, "windows", None)


def test_here_reads_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(used_bytes: int, limit_bytes: int | None) -> Callable[[Any], detect.Machine]:
        return lambda catalog: _machine(catalog, used_bytes=used_bytes, limit_bytes=limit_bytes)

    monkeypatch.setattr(detect, "here", here(0, None))
    (free,) = api.plan(WAN, here=True).cards
    monkeypatch.setattr(detect, "here", here(4 * GIB, 16 * GIB))
    (taken,) = api.plan(WAN, here=True).cards
    assert free.usable_bytes is not None and taken.usable_bytes is not None
    # the driver's own share of the 4 GiB is in CUDA's total already
    assert 3 * GIB < free.usable_bytes - taken.usable_bytes <= 4 * GIB
    assert taken.host_bytes == 0  # 16 GiB hold no offload of 40 GB of weights


def test_no_card_here_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "here", lambda catalog: None)
    found = api.plan(WAN, here=True, cards=["l4"])
    assert "no-gpu-here" in [note.code for note in found.notes]
    with pytest.raises(BadRequest, match="No NVIDIA card was found"):
        api.plan(WAN, here=True)


def test_a_matrix_lays_models_over_cards() -> None:
    found = api.matrix([WAN, "flux.1-dev"], cards=["l4", "h200-sxm"])
    assert [row.model.id for row in found.rows] == [WAN, "flux.1-dev"]
    assert [each.card for each in found.cards] == ["l4", "h200-sxm"]
    large = found.rows[0].cells[1]
    assert (large.verdict, large.precision, large.offload) == ("fits", "full", "none")
    assert found.versions["torch"] == "2.13.0"


def test_a_matrix_goes_on_when_one_model_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def cached(model: Model, request: ExactRequest, settings: Settings, **rest: object) -> object:
        if model.id == WAN:
            raise DryRunFailed("plan-no-facts")
        return _trace(model, request, settings), ()

    monkeypatch.setattr("cardfit.trace.source.traced", cached)
    found = api.matrix([WAN, "flux.1-dev"], cards=["l4"])
    assert [row.model.id for row in found.rows] == ["flux.1-dev"]
    assert [note.args["model"] for note in found.notes if note.code == "plan-matrix-failed"] == [
        WAN
    ]


def test_lists() -> None:
    assert all("text-to-video" in entry.tasks for entry in api.models(task="text-to-video"))
    assert len(api.models()) > len(api.models(task="text-to-video")) > 0
    assert api.model("Wan-AI/Wan2.1-T2V-14B-Diffusers").id == WAN
    assert {offer.card for offer in api.offers(card="L4")} == {"l4"}
    assert len(api.offers()) > len(api.offers(card="l4"))


def test_the_verbs_are_the_public_list() -> None:
    assert sorted(api.__all__) == [
        "accuracy",
        "autopsy",
        "cards",
        "front",
        "matrix",
        "model",
        "models",
        "offers",
        "plan",
        "records",
        "sequence",
        "trace",
    ]
    for name in api.__all__:
        assert (getattr(api, name).__doc__ or "").strip()


def test_a_containers_limit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(limit_bytes: int | None) -> Callable[[Any], detect.Machine]:
        return lambda catalog: _machine(catalog, used_bytes=0, limit_bytes=limit_bytes)

    monkeypatch.setattr(detect, "here", here(16 * GIB))
    limited = {note.code: note for note in api.plan(WAN, here=True).notes}
    assert limited["plan-container-limit"].args == {"limit": "16.0 GiB", "ram": "64.0 GiB"}
    given = api.plan(WAN, here=True, ram_bytes=32 * GIB).notes
    monkeypatch.setattr(detect, "here", here(64 * GIB))
    alike = api.plan(WAN, here=True).notes
    for notes in (given, alike):
        assert "plan-container-limit" not in [note.code for note in notes]


def test_the_disk_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = api.plan(WAN, cards=["h200-sxm"], disk_bytes=10 * GIB).cards
    assert row.disk_bytes is not None and row.disk_bytes > 10 * GIB
    assert (row.verdict, row.why.code) == ("does_not_fit", "plan-over-disk")
    (row,) = api.plan(WAN, cards=["h200-sxm"], disk_bytes=row.disk_bytes).cards
    assert row.verdict == "fits"
    with pytest.raises(BadRequest, match="--disk 200GB"):
        api.plan(WAN, disk_bytes=0)


def test_streams_need_a_card_that_has_them() -> None:
    with pytest.raises(BadRequest, match="use_stream with .*MI300X"):
        api.plan(WAN, Settings(offload="group-leaf", use_stream=True), cards=["mi300x"])
    api.plan(WAN, Settings(offload="group-leaf", use_stream=True), cards=["h200-sxm"])
