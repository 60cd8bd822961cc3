"""Tests keep their cache to themselves: one folder a run, shared by its workers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
os.environ["CARDFIT_CACHE"] = str(Path(tempfile.gettempdir()) / f"cardfit-tests-{_run}")
