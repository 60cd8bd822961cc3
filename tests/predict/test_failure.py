"""The error before it happens, and when expandable segments are worth a try."""

from __future__ import annotations

from dataclasses import replace

from cardfit.predict.estimate import Failure
from cardfit.predict.failure import expandable, failure_note, fragmented, fragmented_note
from cardfit.request import Settings
from cardfit.units import GIB, MIB

FULL = Failure(
    stage="decode",
    component="vae",
    site="convolution in decoder.up",
    tried_bytes=3 * GIB // 2,
    allocated_bytes=20 * GIB,
    reserved_bytes=22 * GIB,
    limit_bytes=23 * GIB,
)


def test_it_reads_as_torch_prints_it() -> None:
    assert failure_note(FULL).text == (
        "Would fail in decode: tried to allocate 1.5 GiB at convolution in decoder.up, with 20.0 GiB "
        "allocated and 2.0 GiB reserved but unused, of 23.0 GiB that the process may reserve."
    )


def test_fragmented_means_that_what_lives_and_what_is_wanted_would_fit() -> None:
    assert fragmented(FULL)
    note = fragmented_note(FULL)
    assert note is not None and "2.0 GiB" in note.text and "expandable_segments:True" in note.text
    at_the_edge = replace(FULL, allocated_bytes=FULL.limit_bytes - FULL.tried_bytes)
    assert fragmented(at_the_edge)
    over = replace(at_the_edge, allocated_bytes=at_the_edge.allocated_bytes + MIB)
    assert not fragmented(over) and fragmented_note(over) is None


def test_expandable_goes_on_top_of_what_is_set() -> None:
    assert expandable(Settings()) == Settings(alloc_conf="expandable_segments:True")
    given = Settings(alloc_conf="max_split_size_mb:64,expandable_segments:False")
    found = expandable(given)
    assert found is not None
    assert found.alloc_conf == "expandable_segments:True,max_split_size_mb:64"
    assert expandable(found) is None
