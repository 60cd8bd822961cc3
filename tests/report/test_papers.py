"""What commands print as JSON, as files to pass on: pages, Markdown, charts as pictures."""

from __future__ import annotations

import importlib.util
import json
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cardfit import api
from cardfit.cli.main import run
from cardfit.measure.sweep import Sweep, SweepRow
from cardfit.messages import speaking
from cardfit.quality.result import Comparison
from cardfit.records.models import Reason
from cardfit.report import drawings, dump, papers
from cardfit.trace.source import DRY_RUNS

_spec = importlib.util.spec_from_file_location(
    "make_answer", Path(__file__).with_name("make_answer.py")
)
make_answer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_answer)
GIB = 2**30
HOSTILE = "<script>alert(1)</script>|`"


def sweep() -> Sweep:
    rows = (
        SweepRow(
            cell="a", values={"offload": "none"}, outcome="ok", peak_bytes=30 * GIB, seconds=9
        ),
        SweepRow(
            cell="b", values={"offload": "model"}, outcome="ok", peak_bytes=20 * GIB, seconds=14
        ),
        SweepRow(
            cell="c", values={"offload": HOSTILE}, skipped=Reason.of("sweep-refused", why=HOSTILE)
        ),
    )
    return Sweep(id="sweep-1", model="flux.1-dev", rows=rows, ran=2, kept=0)


def comparison(frames: int = 3) -> Comparison:
    side = {"kind": "video", "width": 64, "height": 48, "fps": 8, "frames": frames, "bit_depth": 8}
    return Comparison.model_validate(
        {
            "versions": {},
            "reference": {"path": "ref.mp4", **side},
            "candidate": {"path": HOSTILE, **side},
            "aligned": False,
            "frames": frames,
            "totals": {
                "psnr_db": 40.5,
                "ssim": 0.98,
                "ssim_lowest": 0.96,
                "flip": None,
                "xpsnr_db": None,
                "vif": None,
                "identical_frames": 0,
            },
            "worst": {"frame": 1, "ssim": 0.96, "flip": None, "x": 0, "y": 0, "side": 16},
            "seams": None,
            "edges": {"frames": (2,), "found": False, "scores": ()},
            "flicker": None,
            "drift": {"composition": 1, "diverged": False, "fine_energy_ratio": 0.9},
            "per_frame": [
                {"frame": at, "psnr_db": 40, "ssim": 0.96 + 0.01 * at, "composition": 1}
                for at in range(frames)
            ],
            "notes": (),
        }
    )


MADE = {"plan": make_answer.answer, "sweep": sweep, "compare": comparison}


@pytest.fixture(params=list(MADE))
def saved(request, tmp_path, monkeypatch) -> Path:
    """A file of --json, each in turn."""
    path = tmp_path / f"{request.param}.json"
    path.write_text(dump.one(MADE[request.param]()), encoding="utf-8")
    return path


def test_every_kind_becomes_a_page_and_markdown(saved, tmp_path):
    for ending in papers.TEXTS:
        out = tmp_path / f"out{ending}"
        assert run(["report", str(saved), "-o", str(out)]) == 0
        text = out.read_text(encoding="utf-8")
        assert "<script" not in text.replace("\\<", "").lower()
        assert run(["report", str(saved), "-o", str(out)]) == 2  # not over it
    html = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in html and "<svg" in html and "<link" not in html


def test_every_chart_becomes_a_picture(saved, tmp_path):
    names = {"plan": {"stages"}, "sweep": {"peak-time"}, "compare": {"ssim"}}
    wanted = {f"c-{name}" for name in names[saved.stem]}
    for ending in papers.PICTURES:
        assert run(["report", str(saved), "-o", str(tmp_path / f"c{ending}")]) == 0
        assert {path.stem for path in tmp_path.glob(f"c-*{ending}")} == wanted
    for path in tmp_path.glob("c-*.svg"):
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not root.findall(".//{http://www.w3.org/2000/svg}script")
    for path in tmp_path.glob("c-*.png"):
        content = path.read_bytes()
        width, height = struct.unpack(">II", content[16:24])
        assert content.startswith(b"\x89PNG") and width > 500 and height > 200


def test_a_chart_of_stages_has_every_peak_and_bars_in_colour():
    answer = make_answer.answer()
    found = next(each for each in drawings.of_plan(answer) if each.name == "stages")
    for stage in answer.stages:
        assert f"{stage.reserved_bytes / GIB:.1f} GiB" in found.svg
    import zlib

    content = drawings.png(found)
    packed, at = b"", 8
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        packed += content[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    pixels = zlib.decompress(packed)
    assert len(set(pixels)) > 20  # drawn, not blank


def test_time_against_cost_is_drawn_where_cards_have_both():
    token = DRY_RUNS.set(False)
    try:
        answer = api.plan("sdxl-turbo")
    finally:
        DRY_RUNS.reset(token)
    stages, cost = drawings.of_plan(answer)
    assert (stages.name, cost.name) == ("stages", "time-cost")
    circles = ElementTree.fromstring(cost.svg).iter("{http://www.w3.org/2000/svg}circle")
    assert len(list(circles)) > 5
    assert drawings.png(cost).startswith(b"\x89PNG")


def test_a_dutch_chart_keeps_its_places_in_numbers_of_the_drawing():
    with speaking("nl"):
        for each in drawings.of_plan(make_answer.answer()):
            root = ElementTree.fromstring(each.svg)
            rects = root.iter("{http://www.w3.org/2000/svg}rect")
            assert all("," not in rect.get("width", "") for rect in rects)


def test_what_cannot_be_reported_is_refused(tmp_path, capsys):
    other = tmp_path / "a.json"
    for text, said in (
        ("[1]", "schema -"),
        ('{"schema": "cardfit.cards/1"}', "cardfit.sweep/1"),
        ("{", "not JSON"),
    ):
        other.write_text(text)
        assert run(["report", str(other), "-o", str(tmp_path / "a.html")]) == 2
        assert said in capsys.readouterr().err
    other.write_text(dump.one(comparison(frames=1)))
    assert run(["report", str(other), "-o", str(tmp_path / "a.png")]) == 2
    assert "nothing to draw" in capsys.readouterr().err
    found = json.loads(dump.one(sweep()))
    other.write_text(json.dumps({**found, "rows": "none"}))
    assert run(["report", str(other), "-o", str(tmp_path / "a.md")]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
