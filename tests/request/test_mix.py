"""The YAML file of a production mix: what it holds and how each fault is named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cardfit.errors import BadFile, BadRequest
from cardfit.request import Request
from cardfit.request.mix import MAX_REQUESTS, read_requests_file

GOOD = """\
shuffle: 7
keep: true
settings:
  offload: model
requests:
  - flux.1-dev
  - model: sdxl-base
    width: 1024
    count: 3
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mix.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_requests_counts_and_settings(tmp_path: Path) -> None:
    found = read_requests_file(written(tmp_path, GOOD))
    assert [each.count for each in found.requests] == [1, 3]
    assert found.requests[1].request == Request(model="sdxl-base", width=1024)
    assert found.settings.offload == "model"
    assert (found.keep, found.empty_cache) == (True, False)


def test_the_order_is_that_of_the_file_or_shuffled_the_same_way_each_time(tmp_path: Path) -> None:
    listed = read_requests_file(written(tmp_path, GOOD.replace("shuffle: 7\n", "")))
    assert listed.order() == [0, 1, 1, 1]
    many = GOOD.replace("count: 3", "count: 50").replace("- flux.1-dev", "- {model: a, count: 50}")
    shuffled = read_requests_file(written(tmp_path, many))
    assert shuffled.order() == shuffled.order()
    assert shuffled.order() != sorted(shuffled.order())
    assert Counter(shuffled.order()) == {0: 50, 1: 50}


@pytest.mark.parametrize(
    ("text", "error", "named"),
    [
        ("", BadFile, "empty"),
        ("- a", BadFile, "found list"),
        ("requests:", BadFile, "requests is missing, empty or no list"),
        ("requests: []", BadFile, "requests is missing, empty or no list"),
        ("settings: {offload: model}", BadFile, "requests is missing"),
        ("requests:\n  - a\n  - 3\n", BadRequest, "line 3: found value"),
        ("requests:\n  - {model: a, widht: 3}\n", BadRequest, "line 2: widht: no such field"),
        ("requests:\n  - model: a\n    count: 0\n", BadRequest, "line 3: count is 0"),
        ("requests:\n  - {count: 2}\n", BadRequest, "model is missing"),
        ("requests: [a]\nshufle: 3\n", BadRequest, "line 2: shufle"),
        ("requests: [a]\nkeep: 3\n", BadRequest, "keep is 3"),
        ("requests: [{model: a, batch: yes}]\n", BadRequest, "batch is True"),
        ("requests: [!!python/object:os.system a]\n", BadFile, "is refused"),
        (
            f"requests: [{{model: a, count: {MAX_REQUESTS}}}, b]\n",
            BadRequest,
            f"{MAX_REQUESTS + 1} requests; at most {MAX_REQUESTS}",
        ),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, error: type[Exception], named: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(error) as refused:
        read_requests_file(file)
    assert named in str(refused.value) and "mix.yaml" in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"nothing\.yaml"):
        read_requests_file(tmp_path / "nothing.yaml")
