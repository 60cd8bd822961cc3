"""Workflows that a person read node by node: the reader must not say otherwise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml

from cardfit.comfy.reader import read_workflow
from cardfit.comfy.result import Reading, WorkflowRequest

_here = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("templates", _here / "templates.py")
templates = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(templates)

CASES = yaml.safe_load((_here / "by_hand.yaml").read_text(encoding="utf-8"))


def test_there_are_thirty_of_them():
    assert len({case["name"] for case in CASES}) >= 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_workflow_read_by_hand(case: dict[str, Any]):
    path = templates.path(case["name"])
    first = read_workflow(path)
    asks = sorted((each.id, each.input) for each in first.missing)
    assert asks == sorted(map(tuple, case.get("asks", [])))
    found = read_workflow(path, case["answers"]) if "answers" in case else first
    assert not found.missing
    assert len(found.requests) == len(case["requests"])
    for request, expected in zip(found.requests, case["requests"], strict=True):
        _check(request, expected)
    _check_files(found)


def _check(found: WorkflowRequest, expected: dict[str, Any]):
    passes = [[p.width, p.height, p.num_frames, p.steps, p.cfg] for p in found.passes]
    assert passes == expected["passes"]
    assert found.complete
    largest = max(expected["passes"], key=lambda p: p[0] * p[1] * p[2])
    assert [found.width, found.height, found.num_frames] == largest[:3]
    said = {
        "model": found.model,
        "kin": found.kin,
        "task": found.task,
        "fps": found.fps,
        "steps": found.num_inference_steps,
        "guidance": found.guidance_scale,
        "loras": len({name for p in found.passes for name in p.loras}),
        "encoders": sum(part.use == "text_encoder" for part in found.parts),
        "second": found.passes[-1].model,
        "precision": found.quantization_seen.get("transformer"),
        "decode": found.decode
        and [
            found.decode.tile,
            found.decode.overlap,
            found.decode.temporal,
            found.decode.temporal_overlap,
        ],
    }
    checked = {key: value for key, value in expected.items() if key != "passes"}
    assert {key: said[key] for key in checked} == checked
    if found.model is None:
        assert [note.code for note in found.notes] == ["comfy-model-unknown"] and found.seen
    for field in ("width", "height", "num_inference_steps"):
        assert found.origins[field]


def _check_files(found: Reading):
    wanted = {(each.folder, each.name) for each in found.files}
    for request in found.requests:
        for part in request.parts:
            assert any(name == part.file for _, name in wanted)
    for each in found.files:
        assert each.url is None or each.url.startswith("https://")
