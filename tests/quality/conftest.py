"""The clips of the benchmark, small."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PATH = Path(__file__).parents[2] / "benchmarks" / "clips.py"
_spec = importlib.util.spec_from_file_location("clips", _PATH)
clips = importlib.util.module_from_spec(_spec)
sys.modules.setdefault("clips", clips)
_spec.loader.exec_module(clips)
