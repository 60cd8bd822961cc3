"""The predicted activation peak against torch's memory profiler, of a pipeline that nothing wraps."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

_path = Path(__file__).parents[2] / "benchmarks" / "cpu_peak.py"
_spec = importlib.util.spec_from_file_location("cpu_peak", _path)
assert _spec is not None and _spec.loader is not None
cpu_peak: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cpu_peak)


@pytest.mark.parametrize(
    "case", ["tiny SD", "tiny FLUX", "tiny SD, LoRA", "tiny SD, ControlNets", "tiny SD, IP-Adapter"]
)
def test_within_one_percent_of_the_profiler(case: str) -> None:
    found = cpu_peak.measure(*cpu_peak.CASES[case])
    assert abs(found["off_pct"]) <= 1.0
    assert found["with_cpu_only_bytes"] >= found["tensors_bytes"]
