"""The prepared measurement, tried with shrunk modules on a CPU: every kind of case, and rows that can be scored."""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from cardfit.accuracy.rebuild import NotRebuilt, Why, rebuild
from cardfit.accuracy.rows import read
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.request import Request
from cardfit.units import GIB

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def truth():
    spec = importlib.util.spec_from_file_location("gpu_truth", ROOT / "scripts" / "gpu_truth.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_truth"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["decode-qwen", "step-flux-math", "sdxl-model"])
@pytest.mark.filterwarnings("ignore")
def test_a_case_of_every_kind_runs_and_writes_rows(truth, name, tmp_path):
    out = tmp_path / "truth.csv"
    arguments = argparse.Namespace(out=out, only=name, tiny=True, budget=60)
    assert truth.main(arguments) == 0
    good, bad = read(out)
    assert not bad
    assert [row.id for row in good] == [
        f"own-{name}-{kind}" for kind in ("allocated", "reserved", "device")
    ]
    entry = json.loads(out.with_suffix(".json").read_text())[0]
    assert entry["case"]["name"] == name
    assert entry["seconds"] > 0
    if name == "sdxl-model":
        calls = {part: row["calls"] for part, row in entry["stages"].items()}
        assert calls == {"text_encoder": 2, "text_encoder_2": 2, "unet": truth.STEPS, "vae": 1}
    with pytest.raises(NotRebuilt) as caught:  # a CPU has no peak to report
        rebuild(good[0])
    assert caught.value.why is Why.NO_PEAK


def test_what_a_card_would_measure_can_be_scored(truth, tmp_path):
    found = truth.Measured(3 * GIB, 5 * GIB, 6 * GIB, 7 * GIB, 1.0)
    case = truth.CASES[0]
    model = load(case.model)
    request, _ = resolve(model, Request(model=model.id, width=1024, height=1024))
    out = tmp_path / "truth.csv"
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, truth.COLUMNS)
        writer.writeheader()
        for kind in ("allocated", "reserved", "device"):
            writer.writerow(truth.row(case, model, request, found, kind))
    good, bad = read(out)
    assert not bad
    assert [row.peak_bytes for row in good] == [2 * GIB, 6 * GIB, 7 * GIB]
    assert [row.kind for row in good] == ["allocated", "reserved", "device"]
    assert [rebuild(row).working for row in good] == [True, False, False]


def test_without_a_card_it_says_what_to_do(truth, tmp_path, capsys):
    if truth.torch.cuda.is_available():
        pytest.skip("this machine has a card")
    arguments = argparse.Namespace(out=tmp_path / "a.csv", only="", tiny=False, budget=60)
    assert truth.main(arguments) == 2
    assert "--tiny" in capsys.readouterr().err
    assert not (tmp_path / "a.csv").exists()


def test_cases_name_modes_and_precisions_that_exist(truth):
    assert 12 <= len(truth.CASES) <= 16
    assert len({case.name for case in truth.CASES}) == len(truth.CASES)
    for case in truth.CASES:
        assert case.precision in truth.DTYPES
        assert case.scope in truth.RUNS
