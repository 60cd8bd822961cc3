"""The commands of measuring, in process: what they print, and their exit codes. Nothing is run here."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from cardfit.cli.main import run
from cardfit.records import files
from cardfit.records.models import Machine, Outcome, Quality, Record
from cardfit.records.opening import opened
from cardfit.request import Settings
from cardfit.units import GIB

_path = Path(__file__).parents[1] / "records" / "make_record.py"
_spec = importlib.util.spec_from_file_location("make_record", _path)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two records of a sweep on a card, one of them out of memory."""
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path / "data"))
    on = Machine(os="linux", card="rtx-4090")
    rows = tuple(make_record.repetition(each, 10 * GIB) for each in (10.0, 10.2, 9.9))
    good = make_record.record(machine=on, sweep="s", cell="a", repetitions=rows)
    bad = make_record.record(
        machine=on, sweep="s", cell="b", settings={"vae_tiling": True}, latents=(), repetitions=(),
        outcome=Outcome(kind="oom", stage="decode", component="vae", op="vae.decoder, conv2d", tried_bytes=2 * GIB),
    )  # fmt: skip
    with opened(None) as base:
        base.put_all((good, bad))
    for each in (good, bad):
        files.write(each)
    return tmp_path / "data"


def test_records_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["records"]) == 0
    page = capsys.readouterr().out
    assert "10.0 GiB" in page and "out of" in page
    assert run(["records", "list", "--outcome", "oom", "--json"]) == 0
    (bad,) = json.loads(capsys.readouterr().out)["records"]
    assert run(["records", "show", bad["id"]]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert (
        "in decode (vae)" in page
        and "tried to allocate 2.0 GiB" in page
        and "cardfit autopsy" in page
    )
    assert run(["records", "show", "nothing"]) == 2
    assert run(["records", "show"]) == 2
    assert run(["records", "list", "--yes"]) == 2


def test_records_go_out_and_come_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = tmp_path / "export.json", f"sqlite:///{tmp_path / 'other.sqlite'}"
    assert run(["records", "export", str(file)]) == 0
    assert run(["records", "export", str(file)]) == 2  # it is there
    assert run(["records", "import", str(file), "--store", other]) == 0
    assert ": 2 new, 0 brought up to date, 0 there already, 0 refused" in capsys.readouterr().out
    assert run(["records", "prune", "--outcome", "oom", "--store", other]) == 0
    assert "1 records would be removed" in capsys.readouterr().out
    assert run(["records", "prune", "--older-than", "soon"]) == 2


def test_choose_names_the_smallest_and_the_cards(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["choose", "--sweep", "s", "--demand", "600"]) == 0
    page = capsys.readouterr().out
    assert "nothing to change on rtx-4090" in page and "2 cards for 600 an hour" in page
    assert run(["choose", "--sweep", "s", "--json", "--by", "price", "--price", "0.36"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["candidates"][0]["cost_per_output"] == pytest.approx(0.36 / (3600 * 3 / 30.1))
    assert [each["outcomes"] for each in found["candidates"]] == [["ok"], ["oom"]]
    assert run(["choose", "--sweep", "none"]) == 2
    assert run(["choose"]) == 2
    assert run(["choose", "flux.1-dev", "--width", "64"]) == 0
    assert run(["choose", "flux.1-dev", "--width", "128"]) == 2


def test_calibrate_says_what_it_cannot_learn_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate"]) == 2
    assert (
        "none of 2 records can be learnt from (not-ok 1, not-predicted 1)"
        in capsys.readouterr().err
    )


def test_a_sweep_is_checked_before_it_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for words, said in [
        (["sweep", "flux.1-dev"], "nothing is varied"),
        (["sweep", "flux.1-dev", "--over", "offload"], "FIELD=VALUE"),
        (["sweep", "flux.1-dev", "--over", "offload=[1"], "FIELD=VALUE"),
        (
            ["sweep", "flux.1-dev", "--over", "colour=red", "--device", "cpu"],
            "no field of the request",
        ),
        (["sweep", "flux.1-dev", "--auto", "--device", "cpu"], "no card with known memory"),
        (["sweep", str(tmp_path / "none.yaml")], "cannot be read"),
        (["sweep", "flux.1-dev", "--over", "batch=1,2", "--chart", "a.txt"], "--chart a.txt"),
        (
            ["sweep", "flux.1-dev", "--over", "batch=1,2", "--weights", str(tmp_path / "none")],
            "is not there",
        ),
    ]:
        assert run(words) == 2, words
        assert said in capsys.readouterr().err


def test_run_is_asked_for_one_thing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run"]) == 2
    assert run(["run", "flux.1-dev", "--resume", "x"]) == 2
    assert run(["run", "--resume", "nothing-so"]) == 2
    assert "no record begins so" in capsys.readouterr().err
    (good,) = [each for each in files.each() if isinstance(each, Record) and each.latents]
    assert run(["run", "--resume", good.id, "--device", "cpu"]) == 2
    assert "is no longer there" in capsys.readouterr().err


def test_the_chart_is_drawn(tmp_path: Path) -> None:
    from cardfit.measure.sweep import Sweep, SweepRow
    from cardfit.report import drawn
    from cardfit.report import sweep as page

    rows = (
        SweepRow(
            cell="a",
            values={"vae_tiling": True},
            record="r",
            outcome="ok",
            peak_bytes=GIB,
            seconds=2.0,
        ),
        SweepRow(cell="b", values={"vae_tiling": None}, record="q", outcome="oom"),
    )
    found = Sweep(id="s", model="m", rows=rows, ran=2, kept=0)
    assert page.points(found) == [{"values": "vae_tiling true", "seconds": 2.0, "peak": 1.0}]
    for ending in drawn.ENDINGS:
        file = tmp_path / f"chart{ending}"
        page.write(found, file)
        assert file.stat().st_size > 1000


@pytest.mark.parametrize("name", ["record", "sweepfile", "sweep", "choice", "calibration", "probe"])
def test_schemas(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "object"


def test_limits_for_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    reference = make_record.record(sweep="pictures", cell="a")
    lost = Quality(
        reference=reference.id, frames=1, psnr_db=28.0, ssim=0.91, ssim_lowest=0.91, seam_score=8.5, seam_found=True
    )  # fmt: skip
    tiled = make_record.record(
        sweep="pictures", cell="b", settings=Settings(vae_tiling=True), quality=lost
    )
    for each in (reference, tiled):
        files.write(each)
        with opened(None) as store:
            store.put(each)
    assert run(["choose", "--sweep", "pictures", "--min-ssim", "0.97", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    passed = {each["records"][0]: each["passed"] for each in found["candidates"]}
    assert passed == {reference.id: True, tiled.id: False}
    assert run(["choose", "--sweep", "pictures", "--max-seam", "6"]) == 0
    assert "a seam of score 8.5" in " ".join(capsys.readouterr().out.split())
    assert run(["records", "show", tiled.id]) == 0
    assert f"SSIM 0.9100 against {reference.id}" in capsys.readouterr().out
    assert run(["choose", "--sweep", "pictures", "--min-ssim", "2"]) == 2
    assert run(["sweep", "sdxl-base", "--over", "vae_tiling=false,true", "--min-ssim", "0.9"]) == 2
    assert "--reference" in capsys.readouterr().err


def test_probe_tries_the_codecs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cardfit.media import codecs

    monkeypatch.setattr(
        codecs, "TRIED", [codecs.TRIED[0], codecs.TRIED[3]]
    )  # all of them take a while
    assert run(["probe", "--codecs", "--folder", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    row, card = found["codecs"]["rows"]
    assert (row["name"], row["works"], card["name"]) == ("libx264", True, "h264_nvenc")
    assert run(["probe", "--codecs", "--folder", str(tmp_path)]) == 0
    assert "to write h264 use libx264" in capsys.readouterr().out
