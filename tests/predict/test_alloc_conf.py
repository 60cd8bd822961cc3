"""PYTORCH_CUDA_ALLOC_CONF as text: what is read, what is refused and in which words."""

from __future__ import annotations

import pytest

from cardfit.errors import BadRequest
from cardfit.predict.alloc_conf import INTERVALS, AllocConf, parse_alloc_conf
from cardfit.units import MIB


@pytest.mark.parametrize("text", [None, "", " ", "backend:native", "expandable_segments:False"])
def test_nothing_set_is_the_default(text: str | None) -> None:
    assert parse_alloc_conf(text) == AllocConf()


def test_all_at_once_and_blanks_do_not_count() -> None:
    found = parse_alloc_conf(
        "expandable_segments:True, max_split_size_mb:128,"
        " garbage_collection_threshold : 0.8, max_non_split_rounding_mb:64"
    )
    assert found == AllocConf(
        expandable_segments=True,
        max_split_size_bytes=128 * MIB,
        max_non_split_rounding_bytes=64 * MIB,
        garbage_collection_threshold=0.8,
    )


def test_divisions_for_every_size_or_by_size() -> None:
    assert parse_alloc_conf("roundup_power2_divisions:4").roundup_power2_divisions == (
        (4,) * INTERVALS
    )
    by_size = parse_alloc_conf("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
    # below 256 MiB as 256, between what is named nothing, above the last one as ">"
    assert by_size.roundup_power2_divisions == (*(1,) * 9, 2, 4, *(8,) * 5)
    assert parse_alloc_conf("roundup_power2_divisions:[64:8]").roundup_power2_divisions == (
        *(8,) * 7,
        *(0,) * 9,
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("expandable_segment:True", "expandable_segment "),
        ("nonsense", "nonsense"),
        ("expandable_segments:true", "True, False"),
        ("expandable_segments", "True, False"),
        ("max_split_size_mb:20", ">= 21"),
        ("max_split_size_mb:-1", ">= 21"),
        ("max_split_size_mb:1e3", ">= 21"),
        ("max_split_size_mb:99999999999", ">= 21"),
        ("max_non_split_rounding_mb:5", ">= 21"),
        ("garbage_collection_threshold:1.0", "0 < x < 1"),
        ("garbage_collection_threshold:nan", "0 < x < 1"),
        ("roundup_power2_divisions:3", "2^n"),
        ("roundup_power2_divisions:[256:3]", "2^n"),
        ("roundup_power2_divisions:[100:2]", "2^n"),
        ("roundup_power2_divisions:[]", "2^n"),
        ("backend:cudaMallocAsync", "native"),
        ("expandable_segments:True,expandable_segments:True", "twice"),
        (",", "Known: expandable_segments"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(text: str, named: str) -> None:
    with pytest.raises(BadRequest, match="alloc_conf: ") as refused:
        parse_alloc_conf(text)
    assert named in str(refused.value)
