"""Seconds: sums by hand, then laws over work, cards and settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.cards import load as load_cards
from cardfit.library import load
from cardfit.predict.efficiency import Factors, Spread, factors, scheme, spread
from cardfit.predict.timing import correct, seconds
from cardfit.predict.totals import Parts, StageWork, Totals, head_dim_of, totals
from cardfit.predict.transfers import Host, Link, listed_link
from cardfit.request import Settings
from cardfit.trace.stream import Component, Module, Op, Segment, Stream, Trace, Work

CARDS = load_cards(None)
H100 = CARDS["h100-sxm"]
# a card of round numbers: 100 TFLOP/s half, 1 TB/s
ROUND = replace(
    CARDS["a100-sxm-80gb"],
    flop_per_s={
        "fp32": 10e12,
        "tf32": 50e12,
        "fp16_fp32acc": 100e12,
        "bf16": 100e12,
        "int8": 200e12,
    },
    bandwidth_bytes_per_s=1e12,
)
# shares of one, no limits by power, launches for nothing
PLAIN = Factors(
    matmul=1.0,
    convolution=0.5,
    convolution_3d=0.25,
    attention=0.5,
    attention_flash3=1.0,
    bytes=1.0,
    flop_per_joule=None,
    flash_flop_per_sm_cycle=None,
    head_dim_doubling=1.5,
    launch_s=0.0,
    kernel_s=0.0,
    compiled_bytes=0.25,
    compiled_launches=0.5,
    n=1,
)


def work_of(*work: Work, calls: int = 10, stage: str = "denoise", **more: Any) -> Totals:
    part = Parts("transformer", "SomeTransformer", "bfloat16", 2_000_000_000, 1_000_000_000, 20)
    fields: dict[str, Any] = {
        "stages": (StageWork(stage, "transformer", calls, work),),
        "components": (part,),
        "visits": ("transformer",),
        "steps": calls,
        "frames": 1,
        "pixels": 1024 * 1024,
        "batch": 1,
        "head_dim": None,
    }
    return Totals(**{**fields, **more})


def likely(work: Totals, settings: Settings | None = None, card: Any = ROUND, **more: Any) -> float:
    found = seconds(work, settings or Settings(), card, using=more.pop("using", PLAIN), **more)
    assert found.total is not None, found.notes
    return found.total.likely


MATMUL = Work("matmul", "half", 200e12, 1e9, 100)  # 2 s of arithmetic
ELEMENTWISE = Work("elementwise", "half", 0.0, 3e12, 100)  # 3 s of moving


def test_arithmetic_and_bytes_by_hand() -> None:
    assert likely(work_of(MATMUL)) == pytest.approx(2.0)
    assert likely(work_of(ELEMENTWISE)) == pytest.approx(3.0)
    assert likely(work_of(MATMUL, ELEMENTWISE)) == pytest.approx(5.0)


def test_whichever_of_arithmetic_and_bytes_takes_longer() -> None:
    assert likely(work_of(replace(MATMUL, bytes=7e12))) == pytest.approx(7.0)


def test_kinds_reach_their_own_share() -> None:
    assert likely(work_of(replace(MATMUL, kind="convolution"))) == pytest.approx(4.0)
    assert likely(work_of(replace(MATMUL, kind="attention"))) == pytest.approx(4.0)


def test_fp32_convolutions_use_tf32_and_products_do_not() -> None:
    assert likely(work_of(replace(MATMUL, dtype="fp32"))) == pytest.approx(20.0)
    convolution = replace(MATMUL, kind="convolution", dtype="fp32")
    assert likely(work_of(convolution)) == pytest.approx(200 / (0.5 * 50))


def test_narrow_heads_slow_attention_down() -> None:
    attention = replace(MATMUL, kind="attention")
    wide, narrow = (likely(work_of(attention, head_dim=dim)) for dim in (128, 64))
    assert wide == pytest.approx(4.0)
    assert narrow == pytest.approx(6.0)


def test_flash_attention_3_is_hoppers() -> None:
    attention = work_of(replace(MATMUL, kind="attention"))
    assert likely(attention, kernel="flash3") == pytest.approx(4.0)
    hopper = replace(ROUND, compute_capability="9.0")
    assert likely(attention, card=hopper, kernel="flash3") == pytest.approx(2.0)


def test_compiling_fuses_what_is_elementwise() -> None:
    work = work_of(MATMUL, ELEMENTWISE)
    assert likely(work, Settings(compile=True)) == pytest.approx(2.0 + 0.75)


def test_launches_are_a_floor() -> None:
    slow = replace(PLAIN, launch_s=1.0)
    assert likely(work_of(MATMUL), using=slow) == pytest.approx(100.0, rel=1e-3)
    found = seconds(work_of(MATMUL), Settings(), ROUND, using=slow)
    assert found.stages[0].launch_bound


def test_power_limits_a_card_whose_peak_it_cannot_feed() -> None:
    limited = replace(PLAIN, flop_per_joule=50e12 / (ROUND.tdp_w or 1))
    assert likely(work_of(MATMUL), using=limited) == pytest.approx(4.0, rel=0.02)


def test_geforce_counts_at_half_rate() -> None:
    card = CARDS["rtx-4090"]
    found = seconds(work_of(MATMUL), Settings(), card, using=PLAIN)
    assert found.ceiling_s == pytest.approx(200 / 165.2)


def test_model_offload_moves_there_and_back_once() -> None:
    link = Link(20e9, 4e9)
    took = likely(work_of(MATMUL), Settings(offload="model"), link=link)
    assert took == pytest.approx(2.0 + 2 * 2e9 / 4e9)


def test_streamed_groups_hide_behind_the_longer() -> None:
    link = Link(20e9, 4e9)
    streamed = Settings(offload="group-block", use_stream=True)
    assert likely(work_of(MATMUL), streamed, link=link) == pytest.approx(2.0)  # 10 x 2 GB in 1 s
    slow = Link(4e9, 2e9)
    assert likely(work_of(MATMUL), streamed, link=slow) == pytest.approx(5.0)
    waiting = Settings(offload="group-block", use_stream=False)
    assert likely(work_of(MATMUL), waiting, link=slow) == pytest.approx(2.0 + 10.0)


def test_sequential_moves_all_weights_every_call() -> None:
    took = likely(work_of(MATMUL), Settings(offload="sequential"), link=Link(20e9, 4e9))
    assert took == pytest.approx(2.0 + 10 * 2e9 / 4e9)


def test_loading_needs_the_disks_rate() -> None:
    work = work_of(MATMUL)
    assert seconds(work, Settings(), ROUND).load is None
    assert "time-load-unknown" in {n.code for n in seconds(work, Settings(), ROUND).notes}
    found = seconds(
        work, Settings(), ROUND, machine=Host(disk_bytes_per_s=1e9), link=Link(2e9, 1e9)
    )
    assert found.load is not None
    assert found.load.likely == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("card", "settings", "code"),
    [
        ("mi300x", Settings(), "time-vendor"),
        ("gh200-96gb", Settings(), "time-rate-unknown"),
        ("t4", Settings(), "time-no-bf16"),
        ("h100-sxm", Settings(quantization={"transformer": "svdq-int4"}), "time-scheme-unknown"),
        (
            "h100-sxm",
            Settings(quantization={"transformer": "torchao-int8dq"}),
            "time-scheme-unknown",
        ),
    ],
)
def test_unknown_is_none_with_a_reason(card: str, settings: Settings, code: str) -> None:
    found = seconds(work_of(MATMUL), settings, CARDS[card])
    assert found.total is None
    assert found.step is None
    assert [note.code for note in found.notes] == [code]
    assert found.notes[0].text


def test_offload_over_an_unlisted_link_is_unknown() -> None:
    card = replace(ROUND, pcie_gen=None)
    found = seconds(work_of(MATMUL), Settings(offload="model"), card)
    assert [note.code for note in found.notes] == ["time-link-unknown"]
    assert listed_link(card) is None


def test_an_architecture_without_rows_says_so_and_widens_the_band() -> None:
    known = seconds(work_of(MATMUL), Settings(), H100)
    new = seconds(work_of(MATMUL), Settings(), CARDS["b200"])
    assert known.total is not None
    assert new.total is not None
    assert known.basis == "published"
    assert new.basis == "rule"
    assert "time-unfitted" in {note.code for note in new.notes}
    assert new.total.high / new.total.likely > known.total.high / known.total.likely


def test_one_record_scales_and_narrows() -> None:
    record = correct(2.0, 3.0, within=Spread(0.95, 1.05, 9))
    found = seconds(work_of(MATMUL), Settings(), ROUND, using=PLAIN, correction=record)
    assert found.total is not None
    assert (found.total.low, found.total.likely, found.total.high) == pytest.approx(
        (2.85, 3.0, 3.15)
    )
    assert found.basis == "measured"
    with pytest.raises(ValueError, match="0"):
        correct(0.0, 1.0, within=spread())


def test_native_fp8_is_faster_where_the_card_has_it() -> None:
    work = work_of(MATMUL)
    dynamic = Settings(quantization={"transformer": "torchao-fp8dq"}, compile=True)
    plain, quantized = (
        seconds(work, each, H100).total for each in (Settings(compile=True), dynamic)
    )
    ampere = CARDS["a100-sxm-80gb"]
    on_ampere = [seconds(work, each, ampere).total for each in (Settings(compile=True), dynamic)]
    assert plain is not None
    assert quantized is not None
    assert quantized.likely < plain.likely
    assert on_ampere[0] is not None
    assert on_ampere[1] is not None
    assert on_ampere[1].likely >= on_ampere[0].likely  # stored in 8 bits, computed in 16


def test_shipped_factors_are_shares() -> None:
    for name in ("a100-sxm-80gb", "rtx-3090", "rtx-4090", "h100-sxm", "rtx-5090"):
        found = factors(CARDS[name])
        shares = (found.matmul, found.convolution, found.attention, found.attention_flash3)
        assert all(0.1 < share < 1.2 for share in shares), (name, found)
        assert 0.2 < found.bytes < 2.0
        assert 1e-6 < found.launch_s < 1e-4
    assert spread().low < 1 < spread().high
    assert scheme("torchao-fp8dq") is not None


def test_head_dims_of_configs() -> None:
    for name, dim in (
        ("flux.1-dev", 128),
        ("cogvideox-5b", 64),
        ("stable-diffusion-1.5", 40),
        ("sdxl-base", 64),
        ("lumina2", 96),
    ):
        assert head_dim_of(load(name)) == dim


def _trace() -> Trace:
    """Two components; the denoiser is called once in each of four steps."""
    model = load("flux.1-dev")
    from cardfit.library.rules import resolve
    from cardfit.request import Request

    request, _ = resolve(model, Request(model=model.id, num_inference_steps=4))
    linear = Module(
        "proj", "Linear", (("weight", 2000, "bfloat16"), ("bias", 20, "bfloat16")), linear=True
    )
    parts = tuple(
        Component(name, "Some", "bfloat16", (linear,)) for name in ("encoder", "denoiser")
    )
    streams = tuple(
        Stream(n, "forward", "", 0, (), (), (), (Work("matmul", "half", 10.0 * (n + 1), 5.0, 2),))
        for n in range(2)
    )
    timeline = (
        Segment(((int(Op.STAGE), 0, 0, 0), (int(Op.CALL), 0, 0, 0), (int(Op.STAGE), 1, 0, 0)), ()),
        Segment(((int(Op.CALL), 1, 0, 0),), (), repeat=4),
    )
    stages = (("encode_prompt", "encoder"), ("denoise", "denoiser"))
    return Trace(request, Settings(), {}, "P", (), parts, (), stages, streams, timeline, ())


def test_totals_count_every_repetition() -> None:
    found = totals(_trace(), head_dim=128)
    assert [(s.stage, s.component, s.calls) for s in found.stages] == [
        ("encode_prompt", "encoder", 1),
        ("denoise", "denoiser", 4),
    ]
    assert found.stages[1].work == (Work("matmul", "half", 80.0, 20.0, 8),)
    assert found.visits == ("encoder", "denoiser")
    assert found.steps == 4
    assert found.component("denoiser").linear_elements == 1000
    assert found.component("denoiser").weights_bytes == 2020


SIZES = st.floats(1e9, 1e17)


@given(SIZES, SIZES, st.floats(1.0, 10.0))
def test_more_work_never_takes_less(flop: float, size: float, more: float) -> None:
    work = Work("matmul", "half", flop, size, 100)
    larger = replace(work, flop=flop * more, bytes=size * more)
    assert likely(work_of(larger), card=H100, using=None) >= likely(
        work_of(work), card=H100, using=None
    ) * (1 - 1e-9)


@given(SIZES, SIZES, st.sampled_from(["none", "model", "sequential", "group-block", "group-leaf"]))
def test_stages_sum_bands_hold_and_offload_never_gains(
    flop: float, size: float, offload: Any
) -> None:
    work = work_of(Work("matmul", "half", flop, 0.0, 9), Work("elementwise", "half", 0.0, size, 9))
    found = seconds(work, Settings(offload=offload), H100)
    assert found.total is not None
    assert found.total.low <= found.total.likely <= found.total.high
    assert found.total.likely == pytest.approx(sum(s.seconds.likely for s in found.stages))
    plain = seconds(work, Settings(offload="none"), H100).total
    assert plain is not None
    assert found.total.likely >= plain.likely * (1 - 1e-9)


@given(st.floats(1.0, 4.0), st.floats(1.0, 4.0))
def test_a_faster_card_is_never_slower(rate: float, bandwidth: float) -> None:
    work = work_of(MATMUL, ELEMENTWISE, replace(MATMUL, kind="attention"))
    faster = replace(
        ROUND,
        flop_per_s={kind: each * rate for kind, each in ROUND.flop_per_s.items()},
        bandwidth_bytes_per_s=1e12 * bandwidth,
    )
    assert likely(work, card=faster) <= likely(work) * (1 + 1e-9)
