"""Traces kept from older releases: what shapes one, files that are damaged, and the package's own folder."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from cardfit.accuracy import kept
from cardfit.accuracy.older import series_of
from cardfit.accuracy.rebuild import NotRebuilt, rebuild
from cardfit.accuracy.rows import read
from cardfit.accuracy.runs import Runs
from cardfit.errors import BadFile
from cardfit.request import Settings
from cardfit.trace import coding
from cardfit.trace.stream import Component, Module, Trace

MEASURED = Path(__file__).parents[2] / "benchmarks" / "data" / "measured.csv"
COG = {
    "model": "CogVideoX-5B",
    "width": "720",
    "height": "480",
    "num_frames": "49",
    "steps": "50",
    "guidance_cfg": "yes",
    "source_commit_or_date": "2024-10-01",
}


def tiny(rebuilt, version="0.30.3"):
    """A trace of nothing but one weight."""
    module = Module("", "Linear", (("weight", 4096, "bfloat16"),), True, False, 0)
    part = Component("transformer", "Any", "bfloat16", (module,))
    return Trace(
        request=rebuilt.request,
        settings=rebuilt.settings,
        versions={"diffusers": version},
        pipeline="P",
        offload_sequence=("transformer",),
        components=(part,),
        recasts=(),
        stages=(("denoise", "transformer"),),
        streams=(),
        timeline=(),
        sites=(("mm", "to_q"),),
    )


def folder(path, rebuilt, *, same=False, layout=coding.LAYOUT):
    """A folder that keeps one tiny trace."""
    shape = kept.Shape.of(rebuilt)
    name = kept.store(path, tiny(rebuilt))
    checked = kept.Checked(configurations=1, allocated_pct=0.1 if same else 9, reserved_pct=-0.2)
    release = kept.Release(versions={"diffusers": "0.30.3"}, models={rebuilt.model.id: checked})
    entry = kept.KeptTrace(series="0.30", shape=shape, file=name)
    kept.save(path, kept.Index(layout=layout, series={"0.30": release}, traces=(entry,)))
    return path


# --- what shapes a trace


@pytest.mark.parametrize(
    "other",
    [
        {"steps": "20"},
        {"offload": "sequential"},
        {"quantization": "torchao int8wo (transformer)"},
        {"gpu": "H100 80GB"},
        {"scope": "denoise_only"},
        {"framework": "diffusers+torchao"},
        {"precision_weights": "", "precision_compute": "bf16"},
    ],
)
def test_rows_that_differ_here_share_a_trace(made, other):
    plain, row = rebuild(made(**COG)), rebuild(made(**{**COG, **other}))
    assert kept.Shape.of(row).key == kept.Shape.of(plain).key


@pytest.mark.parametrize(
    "other",
    [
        {"num_frames": "25"},
        {"width": "480"},
        {"batch": "2"},
        {"guidance_cfg": "no"},
        {"vae_tiling": "yes"},
        {"vae_slicing": "yes"},
        {"precision_weights": "fp16"},
        {"attention": "unfused"},
        {"scope": "decode_only"},
        {"model": "CogVideoX-2B"},
    ],
)
def test_rows_that_differ_here_do_not(made, other):
    plain, row = rebuild(made(**COG)), rebuild(made(**{**COG, **other}))
    assert kept.Shape.of(row).key != kept.Shape.of(plain).key


def test_a_decode_knows_neither_guidance_nor_text_encoder(made):
    found = kept.Shape.of(rebuild(made(**COG, scope="decode_only")))
    assert found.request == {"width": 720, "height": 480, "num_frames": 49, "batch": 1}
    assert found.settings == {"dtype": {"vae": "bfloat16"}}


# --- a folder


def test_a_trace_survives_its_file(tmp_path, made):
    rebuilt = rebuild(made(**COG))
    found = kept.load(folder(tmp_path, rebuilt))
    assert found.trace("0.30", rebuilt) == tiny(rebuilt)
    quantized = replace(rebuilt, settings=Settings(dtype={"*": "bfloat16"}, offload="model"))
    assert found.trace("0.30", quantized).settings.offload == "model"
    assert found.trace("0.31", rebuilt) is None
    assert found.trace(None, rebuilt) is None
    assert found.checked("0.30", "cogvideox-5b").allocated_pct == 9
    assert found.checked("0.30", "flux.1-dev") is found.checked(None, "cogvideox-5b") is None


def test_equal_traces_share_a_file_and_others_are_removed(tmp_path, made):
    rebuilt = rebuild(made(**COG))
    name = kept.store(tmp_path, tiny(rebuilt))
    assert kept.store(tmp_path, tiny(rebuilt)) == name
    (tmp_path / "0.30-0123456789abcdef.xz").write_bytes(b"gone")
    folder(tmp_path, rebuilt)
    assert [path.name for path in tmp_path.glob("*.xz")] == [name]


def test_no_folder_keeps_nothing(tmp_path, made):
    found = kept.load(tmp_path / "none")
    assert found.index.traces == ()
    assert found.trace("0.30", rebuild(made(**COG))) is None


@pytest.mark.parametrize("text", ["", "[]", "{}x", '{"schema": "other/1", "layout": 1}'])
def test_an_index_that_is_none_is_named(tmp_path, text):
    (tmp_path / kept.INDEX).write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=r"index\.json.*make accuracy"):
        kept.load(tmp_path)


def test_another_layout_is_refused_with_the_command_that_makes_it_anew(tmp_path, made):
    folder(tmp_path, rebuild(made(**COG)), layout=coding.LAYOUT - 1)
    with pytest.raises(BadFile, match=r'layout 0;.*layout 1\..*make accuracy VERSIONS="0\.30\.3"'):
        kept.load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"no archive",
        lzma.compress(b"{}"),
        lzma.compress(b"{"),
        lzma.compress(json.dumps({"streams": 1}).encode()),
        lzma.compress(b"[" * 20_000)[:60],
    ],
)
def test_a_damaged_trace_is_named(tmp_path, made, content):
    rebuilt = rebuild(made(**COG))
    found = kept.load(folder(tmp_path, rebuilt))
    (tmp_path / found.name("0.30", rebuilt)).write_bytes(content)
    with pytest.raises(BadFile, match=r"0\.30-.*\.xz"):
        found.trace("0.30", rebuilt)


# --- which rows match


def test_a_row_of_its_time_is_replayed_from_the_kept_trace(tmp_path, made):
    rebuilt = rebuild(made(**COG))
    run = Runs(kept.load(folder(tmp_path, rebuilt))).of(rebuilt, "0.30")
    assert (run.diffusers, run.matching) == ("0.30.3", True)
    assert run.memory.allocated_bytes == 4096


@pytest.mark.parametrize(
    ("series", "same", "matching"),
    [
        ("0.30", True, True),
        ("0.30", False, False),
        ("0.29", True, False),
        (None, True, False),
        ("0.42", False, True),
    ],
)
def test_what_makes_a_row_match_without_a_kept_trace(
    tmp_path, made, monkeypatch, series, same, matching
):
    monkeypatch.setattr("cardfit.accuracy.runs.todays", lambda rebuilt: tiny(rebuilt, "0.42.1"))
    monkeypatch.setenv("CARDFIT_CACHE", str(tmp_path / "cache"))
    found = kept.load(folder(tmp_path, rebuild(made(**COG)), same=same))
    run = Runs(found).of(rebuild(made(**COG, vae_tiling="yes")), series)
    assert (run.diffusers, run.matching) == ("0.42.1", matching)


def test_a_quantizer_called_in_place_marks_the_parts_it_was_called_on(tmp_path, made):
    from cardfit.predict.weights import InPlace

    row = {**COG, "framework": "diffusers+torchao", "quantization": "torchao int8wo (transformer)"}
    rebuilt = rebuild(made(**row))
    run = Runs(kept.load(folder(tmp_path, rebuilt))).of(rebuilt, "0.30")
    assert isinstance(run.trace.components[0], InPlace)
    plain = rebuild(made(**{**row, "framework": "diffusers"}))
    assert not isinstance(Runs(kept.load(tmp_path)).of(plain, "0.30").trace.components[0], InPlace)


# --- the package's own folder


def test_every_kept_trace_can_be_read_and_would_be_written_the_same(made):
    """A change to `cardfit.trace.coding` without a new LAYOUT ends here."""
    found = kept.kept()
    rebuilt = rebuild(made(**COG))
    paths = sorted(found._folder.glob("*.xz"))
    assert {path.name for path in paths} == {each.file for each in found.index.traces}
    quick = [path for path in paths if path.stat().st_size < 50_000]  # untiled: some of every model
    assert len(quick) >= 8
    for path in quick:
        content = json.loads(lzma.decompress(path.read_bytes()))
        again = coding.encode(coding.decode(content, rebuilt.request, rebuilt.settings))
        assert json.loads(json.dumps(again)) == content
    assert sum(path.stat().st_size for path in paths) < 2_100_000


def test_kept_traces_are_of_models_that_moved():
    index = kept.kept().index
    for each in index.traces:
        assert not index.series[each.series].models[each.shape.model].same
    for series, release in index.series.items():
        assert release.versions["diffusers"].startswith(f"{series}.")
        moved = {name for name, checked in release.models.items() if not checked.same}
        assert moved == {each.shape.model for each in index.traces if each.series == series}


def test_every_environment_can_be_made_again():
    source = (MEASURED.parents[1] / "versions.py").read_text(encoding="utf-8")
    assert [s for s in kept.kept().index.series if f'"{s}": (' not in source] == []


def test_every_row_of_a_model_that_moved_has_its_trace():
    found, missing = kept.kept(), []
    for row in read(MEASURED)[0]:
        try:
            rebuilt = rebuild(row)
        except NotRebuilt:
            continue
        checked = found.checked(series_of(row), rebuilt.model.id)
        if rebuilt.settings.fuse_qkv and rebuilt.model.family == "flux":
            continue  # 0.30 fuses no projections of FLUX: those rows ran what came after it
        if checked and not checked.same and found.name(series_of(row), rebuilt) is None:
            missing.append(row.id)
    assert missing == []


def test_the_decoder_of_its_time_explains_what_todays_does_not():
    """CogVideoX-5B in bf16, nothing offloaded: 31.746 GiB measured in late 2024; 0.42 gives 34.4."""
    row = next(row for row in read(MEASURED)[0] if row.id == "tao-052")
    run = Runs(kept.kept()).of(rebuild(row), series_of(row))
    assert run.matching
    assert abs(run.memory.allocated_bytes / row.peak_bytes - 1) < 0.005
