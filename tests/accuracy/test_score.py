"""Scoring: arithmetic by hand, then three published decodes end to end."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.accuracy.rebuild import Why, rebuild
from cardfit.accuracy.score import (
    Errors,
    ScoredRow,
    bands,
    error_pct,
    predicted_bytes,
    score,
    summary,
)
from cardfit.cards.usable import CONTEXT_LIKELY_BYTES
from cardfit.predict.estimate import MemoryEstimate, StageMemory
from cardfit.predict.memory import CUBLAS_WORKSPACE_BYTES, CUBLAS_WORKSPACE_HOPPER_BYTES
from cardfit.report import accuracy as page
from cardfit.report import dump
from cardfit.report.style import Style
from cardfit.trace.stream import Op
from cardfit.units import GIB


def scored(kind, error, *, series="0.42", matching=True, **rivals):
    return ScoredRow(
        id="a",
        kind=kind,
        measured_bytes=100,
        predicted_bytes=100,
        error_pct=error,
        source="s",
        family="f",
        model="m",
        versions="0.42.1",
        series=series,
        matching=matching,
        rivals=rivals,
    )


def test_errors_by_hand():
    assert error_pct(110, 100) == 10
    found = Errors.of([1, -2, 3, -40, 5, 6, 7, 8, 9, 10])
    assert (found.n, found.median_abs_pct, found.p90_abs_pct, found.worst_pct) == (10, 6.5, 10, -40)


def test_no_rows_have_no_error():
    assert Errors.of([]) == Errors(n=0, median_abs_pct=None, p90_abs_pct=None, worst_pct=None)


@given(st.lists(st.floats(-100, 1000), min_size=1, max_size=40))
def test_the_median_is_under_the_90th_percentile_and_that_under_the_worst(errors):
    found = Errors.of(errors)
    assert found.median_abs_pct <= found.p90_abs_pct + 1e-4 <= abs(found.worst_pct) + 2e-4


def test_kinds_are_never_mixed():
    rows = [
        scored("allocated", 1.0, rule=50.0),
        scored("reserved", 5.0, weights_only=-60.0),
        scored("reserved", 7.0),
    ]
    found = summary(rows)
    assert found["allocated"].n == 1
    assert found["reserved"].median_abs_pct == 6
    assert found["device"].n == found["unnamed"].n == found["comfyui"].n == 0
    assert (found["rule"].worst_pct, found["weights_only"].worst_pct) == (50, -60)


def test_matching_rows_are_summed_up_apart():
    rows = [
        scored("allocated", 1.0),
        scored("allocated", 9.0, series="0.30", matching=False),
        scored("allocated", 5.0, series=None, matching=False),
    ]
    found = summary(rows)
    assert (found["allocated"].n, found.matching["allocated"].n) == (3, 1)
    assert found.matching["allocated"].worst_pct == 1
    assert found.matching["reserved"].n == 0


def test_bands_leave_out_rows_of_another_time_whatever_their_error():
    rows = [
        scored("allocated", 1.0),
        scored("allocated", 0.0, series="0.30", matching=False),
        scored("allocated", 50.0, series=None, matching=False),
    ]
    assert {kind: band.n for kind, band in bands(rows).items()} == {
        "allocated": 2,
        "reserved": 2,
        "device": 2,
    }
    assert bands(rows[1:2]) == {}


def stage(name, weights, activation):
    return StageMemory(
        name=name,
        component="x",
        calls=1,
        weights_bytes=weights,
        activation_bytes=activation,
        allocated_bytes=weights + activation,
        reserved_bytes=weights + 2 * activation,
        low_bytes=0,
        high_bytes=0,
        basis="traced",
        site="",
    )


class Weights:
    def __init__(self, name, size):
        from cardfit.trace.stream import Module

        self.name, self.kind, self.dtype = name, "X", "bfloat16"
        self.modules = (Module("", "X", (("weight", size, "bfloat16"),), False, False, 0),)


class Multiplies:
    events = ((Op.MATMUL, 0, 0, 0),)


class Traced:
    streams = (Multiplies,)
    components = (Weights("transformer", 20 * GIB), Weights("text_encoder", 8 * GIB))


def estimated():
    stages = (stage("denoise", 28 * GIB, GIB), stage("decode", 28 * GIB, 3 * GIB))
    return MemoryEstimate(
        stages=stages,
        peak_stage="decode",
        allocated_bytes=31 * GIB,
        reserved_bytes=34 * GIB,
        reserved_low_bytes=0,
        reserved_high_bytes=0,
        host_bytes=0,
        failure=None,
        left_out=(),
    )


def test_each_kind_of_figure_of_a_whole_run(made):
    rebuilt = rebuild(made())
    args = (rebuilt, Traced, estimated())
    assert predicted_bytes("allocated", *args) == 31 * GIB
    assert predicted_bytes("unnamed", *args) == 31 * GIB
    assert predicted_bytes("reserved", *args) == 34 * GIB
    assert predicted_bytes("device", *args) == 34 * GIB + CONTEXT_LIKELY_BYTES


def test_a_denoiser_alone_leaves_out_the_other_weights_where_they_were_resident(made):
    whole = rebuild(made(scope="denoise_only"))
    assert predicted_bytes("allocated", whole, Traced, estimated()) == 21 * GIB
    moved = rebuild(made(scope="denoise_only", offload="group_leaf"))
    assert predicted_bytes("allocated", moved, Traced, estimated()) == 29 * GIB


def test_a_decode_is_its_working_set(made):
    def found(gpu, trace):
        decode = rebuild(made(model="SDXL VAE", scope="decode_only", gpu=gpu))
        return predicted_bytes("allocated", decode, trace, estimated())

    class Convolves(Traced):
        streams = ()

    assert found("RTX 4090", Traced) == 3 * GIB - CUBLAS_WORKSPACE_BYTES
    assert found("H100", Traced) == 3 * GIB - CUBLAS_WORKSPACE_HOPPER_BYTES
    assert found("RTX 4090", Convolves) == 3 * GIB


def test_a_decode_whose_source_counts_the_weights(made):
    notes = "peak of the decode, weights included"
    decode = rebuild(made(model="SDXL VAE", scope="decode_only", notes=notes))
    assert predicted_bytes("allocated", decode, Traced, estimated()) == 31 * GIB
    assert predicted_bytes("reserved", decode, Traced, estimated()) == 34 * GIB


DECODE = {
    "scope": "decode_only",
    "framework": "InvokeAI benchmark script (diffusers VAE)",
    "precision_weights": "fp16",
    "width": "512",
    "height": "512",
    "peak_unit_as_written": "MB",
    "gpu": "RTX 4090",
}


@pytest.fixture
def three(table, tmp_path, monkeypatch):
    """Three published decodes (VAE VRAM Usage Benchmark Report, MiB) and one row that cannot be read."""
    monkeypatch.setenv("CARDFIT_CACHE", str(tmp_path / "cache"))
    return table(
        {**DECODE, "id": "sd", "model": "SD1.5 VAE", "peak_gib_reported": "610.06"},
        {**DECODE, "id": "xl", "model": "SDXL VAE", "peak_gib_reported": "610.06"},
        {**DECODE, "id": "xl32", "model": "SDXL VAE", "peak_gib_reported": "962.36", "precision_weights": "fp32"},
        {**DECODE, "id": "torn", "model": "SDXL VAE", "peak_gib_reported": "NaN"},
        {**DECODE, "id": "none", "model": "SDXL VAE", "peak_gib_reported": ""},
    )  # fmt: skip


def test_three_published_decodes(three):
    said = []
    found = score(three, progress=lambda what, share: said.append((what, share)))
    assert [row.id for row in found.rows] == ["sd", "xl", "xl32"]
    assert found.summary["allocated"].n == 3
    assert abs(found.summary["allocated"].worst_pct) < 0.5
    assert {row.id: row.why for row in found.skipped} == {
        "torn": Why.BAD_VALUE,
        "none": Why.NO_PEAK,
    }
    assert said[0][0].startswith("sd ")
    assert all(0 <= share <= 1 for _, share in said)
    body = json.loads(dump.one(found))
    assert {"rows", "skipped", "summary"} <= set(body)
    assert {
        "id",
        "kind",
        "measured_bytes",
        "predicted_bytes",
        "error_pct",
        "source",
        "family",
    } <= set(body["rows"][0])
    assert set(body["summary"]) == {
        "allocated", "reserved", "device", "unnamed", "rule", "weights_only", "comfyui", "invokeai",
        "matching",
    }  # fmt: skip
    text = "\n".join(page.lines(found, Style()))
    assert "3 rows scored, 2 not" in text
    assert "xl32" in text
    assert [row.matching for row in found.rows] == [False] * 3  # the rows tell no day
    assert body["notes"][0]["code"] == "accuracy-no-time"
    assert any("sd, xl, xl32" in line for line in page.remarks(found))
    assert any("peak_gib_reported" in line for line in page.remarks(found))
    again = score(three)  # from the cache
    assert again.rows == found.rows
