"""Scripts that people run, described in a table: each is read as it is described, or asks for what it lacks.

`field_pipelines.csv` holds the descriptions with their sources, `cases/` a script of our own for each, `cases.yaml`
what the table has no column for.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import yaml

from cardfit.library.load import load
from cardfit.library.rules import resolve, settings_allowed
from cardfit.script.planning import plan_file_of
from cardfit.script.reader import read

HERE = Path(__file__).parent
TABLE = (HERE / "field_pipelines.csv").read_text(encoding="utf-8").splitlines()
ROWS = {row["id"]: row for row in csv.DictReader(TABLE)}
EXPECTED = yaml.safe_load((HERE / "cases.yaml").read_text(encoding="utf-8"))
FILES = {path.name[:3].upper(): path for path in sorted((HERE / "cases").glob("d*.py"))}
COLUMNS = {
    "width": "width",
    "height": "height",
    "num_frames": "num_frames",
    "batch": "batch",
    "steps": "num_inference_steps",
    "guidance": "guidance_scale",
    "export_fps": "fps",
}


def number(text):
    """The number that a cell begins with; None for one that has none."""
    word = text.split()[0].rstrip(",") if text else ""
    return float(word) if word.replace(".", "", 1).isdigit() else None


@pytest.fixture(scope="module")
def readings():
    return {name: read(path) for name, path in FILES.items()}


def test_every_row_has_a_script():
    assert set(FILES) == set(ROWS) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"D13"}))
def test_the_columns_of_the_table(readings, name):
    row, expected = ROWS[name], EXPECTED[name]
    found = readings[name].requests[-1]
    assert found.pipeline == row["pipeline_class"].split(" + ")[0]
    if " " not in row["model_id"].split(" + ")[0]:
        assert found.repo == row["model_id"].split(" + ")[0]
    for column, field in COLUMNS.items():
        wanted = number(row[column])
        if wanted is None or field not in expected.get("columns", COLUMNS.values()):
            continue
        if column == "steps" and "steps" in expected:
            wanted = expected["steps"]
        assert getattr(found, field) == wanted, field


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"D13"}))
def test_settings_defaults_and_what_is_listed(readings, name):
    expected, reading = EXPECTED[name], readings[name]
    found = reading.requests[-1]
    assert found.settings.model_dump(exclude_defaults=True) == expected["settings"]
    basis = {origin.field: (origin.value, origin.basis) for origin in found.origins}
    for field, value in expected.get("defaults", {}).items():
        assert basis[field][0] == value
        assert basis[field][1] in ("signature", "model"), field
    parts = {part.name: part for part in found.components}
    for part, (kind, blocks, stream) in expected.get("groups", {}).items():
        group = parts[part].group
        assert (group.type, group.num_blocks_per_group, group.use_stream) == (kind, blocks, stream)
    for part, source in expected.get("source", {}).items():
        assert parts[part].source == source
    texts = " | ".join(note.text for note in found.not_modelled)
    assert all(part in texts for part in expected.get("listed", ())), texts
    remarks = " | ".join(note.text for note in (*found.notes, *reading.notes))
    assert all(part in remarks for part in expected.get("notes", ())), remarks
    if "requests" in expected:
        assert [
            [r.width, r.height, r.num_inference_steps, r.effective_steps] for r in reading.requests
        ] == expected["requests"]
    else:
        assert len(reading.requests) == 1
    for key, field in (
        ("autocast", "autocast"),
        ("device", "device"),
        ("length", "max_sequence_length"),
    ):
        if key in expected:
            assert getattr(found, field) == expected[key]
    if "kin" in expected:
        assert (found.model, found.kin) == (expected["kin"], True)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_what_is_not_said_is_asked_and_nothing_else(readings, name):
    asked = {each.input: each.line for each in readings[name].missing}
    assert asked == EXPECTED[name].get("missing", {})


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"D03", "D13", "D17", "D23"}))
def test_what_is_read_can_be_planned(readings, name):
    for found in readings[name].requests:
        asked = plan_file_of(found)
        entry = load(asked.request.model)
        exact, _ = resolve(entry, asked.request)
        settings_allowed(entry, asked.settings)
        assert (exact.width, exact.height, exact.batch) == (found.width, found.height, found.batch)


def test_every_field_has_a_line_that_says_it(readings):
    for name, reading in readings.items():
        lines = FILES[name].read_text(encoding="utf-8").splitlines()
        for request in reading.requests:
            for origin in request.origins:
                assert origin.lines and all(1 <= line <= len(lines) for line in origin.lines)
                if origin.basis == "script" and origin.field in (
                    "width",
                    "height",
                    "num_frames",
                    "fps",
                ):
                    said = " ".join(lines[line - 1] for line in origin.lines)
                    # the number itself, or what it is worked out from
                    assert any(sign.isdigit() for sign in said)


def test_the_picture_answers_for_its_size(tmp_path):
    from struct import pack

    picture = tmp_path / "first.png"
    head = b"\x89PNG\r\n\x1a\n" + pack(">I", 13) + b"IHDR" + pack(">II", 1920, 1080)
    picture.write_bytes(head + bytes(9))
    (found,) = read(FILES["D03"], image=picture).requests
    # the largest size of that aspect ratio in 720 x 1280 pixels, in steps of 16
    assert (found.width, found.height) == (1280, 720)
    assert found.complete


@pytest.mark.parametrize("name", ["D03", "D17"])
def test_answers_settle_the_size(name):
    reading = read(FILES[name], {"width": 832, "height": 480})
    (found,) = reading.requests
    assert reading.missing == () and found.complete
    assert {o.basis for o in found.origins if o.field in ("width", "height")} == {"answer"}


def test_a_model_is_named_for_one_that_the_library_lacks():
    (found,) = read(FILES["D23"], {"model": "sana-1.6b"}).requests
    assert (found.model, found.complete) == ("sana-1.6b", True)


@pytest.mark.parametrize(
    ("answers", "offload", "tiling", "scheme"),
    [
        ({}, "none", None, None),
        ({"offload": True}, "model", None, None),
        ({"offload": True, "tiling": True, "quantize": "8bit"}, "model", True, "bnb-int8"),
        ({"tiling": True, "quantize": "nf4"}, "none", True, "bnb-nf4"),
    ],
)
def test_a_script_driven_by_arguments_follows_them(answers, offload, tiling, scheme):
    row = ROWS["D13"]
    reading = read(FILES["D13"], {"pipeline": "hunyuan", **answers})
    (found,) = reading.requests
    assert reading.missing == ()
    assert found.pipeline == row["pipeline_class"]
    assert (found.width, found.height, found.num_frames) == (
        int(row["width"]),
        int(row["height"]),
        int(row["num_frames"]),
    )
    assert (found.settings.offload, found.settings.vae_tiling) == (offload, tiling)
    assert found.settings.quantization.get("transformer") == scheme
    assert found.max_sequence_length == 128
    (other,) = read(FILES["D13"], {"pipeline": "ltx"}).requests
    assert (other.pipeline, other.model) == ("LTXPipeline", "ltx-video-2b-0.9.0")
