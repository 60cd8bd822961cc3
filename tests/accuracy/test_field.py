"""Verdicts against outcomes: the rules of scoring, a script's weights by hand, the command."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardfit
from cardfit.accuracy import field
from cardfit.accuracy.field import FieldScore, FieldSummary, ends_in, right, score
from cardfit.accuracy.field_rows import COLUMNS
from cardfit.accuracy.field_scripts import Habit, laid, script_of
from cardfit.accuracy.field_why import FieldWhy
from cardfit.cli.main import run
from cardfit.errors import BadRequest
from cardfit.messages import TEXTS
from cardfit.plan.target import Band
from cardfit.plan.verdict import Host, judge
from cardfit.predict.estimate import Failure, MemoryEstimate, StageMemory
from cardfit.request import Settings
from cardfit.trace.stream import Component, Module, Trace
from cardfit.units import GIB

CASE = {
    "id": "f-1",
    "model": "FLUX.1-dev",
    "width": "1024",
    "height": "1024",
    "precision": "bf16",
    "framework": "diffusers",
    "gpu": "RTX 4090",
    "gpu_vram_gib": "24",
    "outcome": "ok",
    "completeness": "full",
}


@pytest.fixture
def table(tmp_path):
    def write(*rows, columns=COLUMNS):
        path = tmp_path / "field.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows({**CASE, **row} for row in rows)
        return path

    return write


def stage(name, weights, active, reserved=None, component="transformer"):
    allocated = weights + active
    reserved = allocated if reserved is None else reserved
    return StageMemory(
        name, component, 1, weights, active, allocated, reserved, allocated, reserved, "traced", "x"
    )


def memory(*stages, host=0, failure=None):
    top = max(stages, key=lambda each: each.reserved_bytes)
    return MemoryEstimate(
        stages=stages,
        peak_stage=top.name,
        allocated_bytes=max(each.allocated_bytes for each in stages),
        reserved_bytes=top.reserved_bytes,
        reserved_low_bytes=top.reserved_bytes,
        reserved_high_bytes=top.reserved_bytes,
        host_bytes=host,
        failure=failure,
        left_out=(),
    )


def component(name, count, dtype, size):
    module = Module("", "Linear", (("weight", count * size, dtype),))
    return Component(name, "Any", dtype, (module,))


def trace_of(*components):
    return Trace(None, Settings(), {}, "P", (), components, (), (), (), (), ())  # type: ignore[arg-type]


# -- right and wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "verdict", "reason", "expected"),
    [
        ("ok", "fits", "surely", True),
        ("ok", "tight", "likely", True),
        ("ok", "does_not_fit", "device", False),
        ("ok", "unknown", "unverified", False),
        ("slow", "spills", "spill", True),
        ("oom", "does_not_fit", "device", True),
        ("oom", "tight", "likely", False),
        ("oom", "fits", "surely", False),
        ("host_oom", "does_not_fit", "host", True),
        ("host_oom", "does_not_fit", "device", False),
        ("host_oom", "fits", "surely", False),
    ],
)
def test_what_is_right(outcome, verdict, reason, expected):
    assert right(outcome, verdict, reason) is expected


def scored(outcome, verdict, reason="device", stage_right=None, completeness="full"):
    return FieldScore(
        id="x",
        completeness=completeness,
        model="m",
        card="c",
        runtime="diffusers",
        outcome=outcome,
        verdict=verdict,
        reason=reason,
        right=right(outcome, verdict, reason),
        stage=None,
        said_stage=None,
        stage_right=stage_right,
        peak_bytes=1,
        peak_stage="decode",
        usable_bytes=1,
        host_bytes=1,
        ram_bytes=None,
    )


def test_the_summary_by_hand():
    rows = [
        scored("ok", "fits"),
        scored("ok", "does_not_fit"),
        scored("oom", "fits", stage_right=False),
        scored("oom", "tight"),
        scored("oom", "does_not_fit", stage_right=True),
        scored("ok", "tight", completeness="partial"),
    ]
    found = field.summary(rows)
    assert found["full"] == FieldSummary(
        n=5, right=2, false_fits=1, false_misses=1, tight=1, stage_right=1, stage_n=2
    )
    assert (found["partial"].n, found["partial"].right, found["partial"].tight) == (1, 1, 1)


OUTCOMES = st.sampled_from(["ok", "slow", "oom", "host_oom"])
VERDICTS = st.sampled_from(["fits", "tight", "spills", "does_not_fit", "unknown"])


@given(st.lists(st.tuples(OUTCOMES, VERDICTS), max_size=30))
def test_false_verdicts_are_never_right(pairs):
    found = FieldSummary.of([scored(*pair) for pair in pairs])
    assert found.right + found.false_fits + found.false_misses <= found.n == len(pairs)
    assert found.false_fits == sum(v == "fits" and o in ("oom", "host_oom") for o, v in pairs)


# -- where a run ends ----------------------------------------------------------------------------


def judged(estimate, usable, ram=None):
    return judge(estimate, Band(usable, usable, usable), Host(ram))


def test_weights_that_exceed_the_card_end_the_load():
    found = judged(memory(stage("encode_prompt", 5, 1), stage("denoise", 20, 3)), 10)
    assert ends_in(found, None) == "load"


def test_activations_that_exceed_the_card_end_their_stage():
    found = judged(memory(stage("denoise", 8, 1), stage("decode", 2, 30)), 10)
    assert ends_in(found, None) == "decode"


def test_between_allocated_and_reserved_the_limited_replay_says_where():
    free = memory(stage("denoise", 8, 1), stage("decode", 2, 7, reserved=15))
    failure = Failure("denoise", "transformer", "x", 1, 9, 9, 10)
    limited = memory(*free.stages, failure=failure)
    assert ends_in(judged(free, 10), limited) == "denoise"
    assert ends_in(judged(free, 20), None) is None


def test_a_host_that_is_too_small_ends_the_load():
    found = judged(memory(stage("denoise", 1, 1), host=50), 10, ram=40)
    assert (found.reason, ends_in(found, None)) == ("host", "load")


# -- scripts -------------------------------------------------------------------------------------

PARTS = (
    component("text_encoder", 1000, "bfloat16", 2),
    component("transformer", 5000, "bfloat16", 2),
    component("vae", 100, "float32", 4),
)
OFFLOADED = memory(
    stage("encode_prompt", 2000, 50, component="text_encoder"),
    stage("denoise", 10000, 700, reserved=11000),
    stage("decode", 400, 900, component="vae"),
    host=9,
)


def test_wan_by_hand():
    habit = Habit(script_of("wan2.1-t2v-14b"), moves=True)
    found = laid(trace_of(*PARTS), OFFLOADED, Settings(), habit)
    stages = {each.name: each for each in found.stages}
    # the transformer lies in fp32: 20000; the text encoder visits while it is there
    assert stages["encode_prompt"].weights_bytes == 2000 + 20000 + 400
    assert stages["denoise"].weights_bytes == 20400
    assert stages["denoise"].reserved_bytes == 20400 + 700 + 300
    assert (stages["decode"].weights_bytes, stages["decode"].allocated_bytes) == (400, 1300)
    assert found.allocated_bytes == 2000 + 20000 + 400 + 50
    assert found.host_bytes == 2000 + 20000 + 400


def test_wan_with_its_text_encoder_on_the_cpu():
    habit = Habit(script_of("wan2.1-t2v-14b"), moves=True, elsewhere=("text_encoder",))
    found = laid(trace_of(*PARTS), OFFLOADED, Settings(), habit)
    assert [each.name for each in found.stages] == ["denoise", "decode"]
    assert found.allocated_bytes == 21100


def test_a_text_encoder_that_is_read_twice_sets_the_host_peak():
    small = (component("text_encoder", 9000, "bfloat16", 2), PARTS[1], PARTS[2])
    habit = Habit(script_of("wan2.1-t2v-1.3b"), moves=False)
    assert laid(trace_of(*small), OFFLOADED, Settings(), habit).host_bytes == 2 * 18000


def test_two_experts_take_turns():
    parts = (*PARTS, component("transformer_2", 6000, "bfloat16", 2))
    habit = Habit(script_of("wan2.2-t2v-a14b"), moves=True)
    found = laid(trace_of(*parts), OFFLOADED, Settings(), habit)
    denoise = next(each for each in found.stages if each.name == "denoise")
    assert denoise.weights_bytes == 24000 + 400


def test_ltx_arrives_in_fp32_and_says_so_as_load():
    resident = memory(stage("denoise", 12400, 100), stage("decode", 12400, 900, component="vae"))
    found = laid(trace_of(*PARTS), resident, Settings(), Habit(script_of("ltx-video-13b"), False))
    load = found.stages[0]
    assert (load.name, load.component) == ("load", "transformer")
    assert load.allocated_bytes == 4000 + 10000 + 400
    assert found.peak_stage == "load"
    bf16 = Habit(script_of("ltx-video-13b"), False, stated="bfloat16")
    assert laid(trace_of(*PARTS), resident, Settings(), bf16).stages[0].allocated_bytes == 12200


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_parts_of_a_script_s_stages_sum(weights, active, moves):
    base = memory(stage("denoise", weights, active, reserved=weights + active + 7))
    habit = Habit(script_of("wan2.1-t2v-14b"), moves)
    for each in laid(trace_of(*PARTS), base, Settings(), habit).stages:
        assert each.weights_bytes + each.activation_bytes == each.allocated_bytes
        assert each.allocated_bytes <= each.reserved_bytes


# -- the whole -----------------------------------------------------------------------------------


@pytest.fixture
def replayed(monkeypatch):
    """Every replay gives the same estimate; returns what was asked of it."""

    def use(estimate, limited=None):
        asked = []

        def kept(replay, model, trace, settings, *, architecture, limit_bytes):
            asked.append((settings.offload, architecture, limit_bytes))
            return estimate if limit_bytes is None else limited

        monkeypatch.setattr(field, "kept", kept)
        monkeypatch.setattr(field.cache, "cached", lambda *_: (trace_of(*PARTS), ()))
        monkeypatch.setattr(field.cache, "versions", lambda: {"torch": "2"})
        return asked

    return use


def test_a_case_that_fits(table, replayed):
    asked = replayed(memory(stage("denoise", 10 * GIB, GIB)))
    found = score(table({}))
    assert [(row.verdict, row.right, row.card) for row in found.rows] == [
        ("fits", True, "rtx-4090")
    ]
    assert asked == [("none", "Ada Lovelace", None)]
    assert found.summary["full"].n == 1


def test_a_case_between_takes_a_replay_with_the_card_as_the_limit(table, replayed):
    between = memory(stage("denoise", 10 * GIB, GIB, reserved=30 * GIB))
    asked = replayed(between, memory(stage("denoise", 10 * GIB, GIB)))
    (row,) = score(table({})).rows
    assert (row.verdict, row.reason) == ("tight", "with_limit")
    assert asked[-1][2] == row.usable_bytes


def test_an_oom_row_compares_its_stage(table, replayed):
    replayed(memory(stage("denoise", 2 * GIB, GIB), stage("decode", 2 * GIB, 40 * GIB)))
    rows = score(
        table(
            {"id": "a", "outcome": "oom", "stage": "vae_decode"},
            {"id": "b", "outcome": "oom", "stage": "denoise"},
            {"id": "c", "outcome": "oom", "stage": "unknown"},
        )
    ).rows
    assert [(row.stage, row.stage_right) for row in rows] == [
        ("decode", True),
        ("decode", False),
        ("decode", None),
    ]


SKIPPED = ({"id": "a", "framework": "ComfyUI"}, {"id": "b", "width": "wide"})


def test_json_is_the_versioned_answer(table, capsys):
    assert run(["accuracy", "--field", str(table(*SKIPPED)), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.field/1"
    assert {row["id"]: row["why"] for row in body["skipped"]} == {
        "a": "other_runtime",
        "b": "bad_value",
    }
    assert body["summary"]["full"]["false_fits"] == body["summary"]["partial"]["n"] == 0


def test_the_page_shows_what_went_wrong(table, replayed, capsys):
    replayed(memory(stage("denoise", 2 * GIB, GIB)))
    path = table({"id": "lost", "outcome": "oom"}, {"id": "won"}, *SKIPPED)
    assert run(["accuracy", "--field", str(path)]) == 0
    said = capsys.readouterr()
    assert "2 cases scored, 2 not" in said.out
    assert "lost" in said.out
    assert "won" not in said.out
    assert TEXTS["accuracy-why-other_runtime"] in said.out
    assert "column width" in said.err


@pytest.mark.parametrize("column", ["outcome", "stage", "completeness", "gpu_vram_gib", "frames"])
def test_a_cell_that_cannot_be_read_is_named(table, column):
    (skip,) = score(table({column: "1.5e9999"})).skipped
    assert (skip.why, skip.column, skip.row) == (FieldWhy.BAD_VALUE, column, 2)


def test_bad_input(table, capsys):
    assert run(["accuracy", "--field", str(table({}, columns=("id", "model")))]) == 2
    assert "completeness" in capsys.readouterr().err
    path = str(table({}))
    assert run(["accuracy"]) == 2
    assert "--field" in capsys.readouterr().err
    assert run(["accuracy", path, "--field", path]) == 2
    with pytest.raises(BadRequest):
        cardfit.accuracy()  # type: ignore[call-overload]


def test_every_reason_has_words():
    assert [why for why in FieldWhy if f"accuracy-why-{why.value}" not in TEXTS] == []
