"""A real Ray cluster of several nodes on this machine, started once for all tests of the room."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cardfit.fleet.cluster import Cluster, joined

ROOT = Path(__file__).parents[3]


def module(path: str) -> Any:
    """A module of another room's tests."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "tests" / path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="session")
def make_record() -> Any:
    """The module that makes records."""
    return module("records/make_record.py")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stable Diffusion with few and narrow layers."""
    target = tmp_path_factory.mktemp("weights") / "sd"
    made: Path = module("measure/tiny.py").save("stable-diffusion-1.5", target)
    return made


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of the driver."""
    found = tmp_path / "data"
    monkeypatch.setenv("CARDFIT_DATA", str(found))
    return found


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """A head that runs nothing and two nodes, which say that they have a card each."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    from ray import cluster_utils

    found = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for card in ("rtx-4090", "l40s"):
        found.add_node(num_cpus=1, resources={f"card:{card}": 1})
    yield found
    found.shutdown()


@pytest.fixture(scope="module")
def cluster(nodes: Any) -> Iterator[Cluster]:
    """The cluster of the nodes, joined once; tests that join it themselves stand before those that use this."""
    with joined(nodes.address) as found:
        yield found
