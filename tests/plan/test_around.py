"""What is said of the machine around a card."""

from __future__ import annotations

import pytest

from cardfit.cards import load
from cardfit.errors import BadRequest
from cardfit.plan.around import check_streams, container_limit, disk_notes
from cardfit.request import Settings
from cardfit.units import GIB


def test_a_container_counts_only_below_the_machines_ram() -> None:
    (note,) = container_limit(64 * GIB, 16 * GIB)
    assert note.text == (
        "This container may use 16.0 GiB of the machine's 64.0 GiB of RAM: the verdicts count with 16.0 GiB."
    )
    assert container_limit(64 * GIB, 64 * GIB) == container_limit(64 * GIB, None) == ()
    assert container_limit(None, 16 * GIB)[0].args["ram"] == "?"


def test_the_disk_is_spoken_of_where_it_is_short_or_doubled() -> None:
    assert disk_notes(30 * GIB, 30 * GIB, 0) == disk_notes(30 * GIB, None, 0) == ()
    (short,) = disk_notes(30 * GIB, 29 * GIB, 0)
    assert "30.0 GiB of disk, and 29.0 GiB are free here" in short.text
    (double,) = disk_notes(30 * GIB, None, 30 * GIB)
    assert "up to 30.0 GiB more on disk" in double.text


def test_streams_are_for_cards_that_have_them() -> None:
    cards = load()
    streamed = Settings(offload="group-leaf", use_stream=True)
    check_streams(streamed, [cards["rtx-4090"]])
    check_streams(Settings(offload="group-leaf"), cards.values())  # open: nothing was asked for
    with pytest.raises(BadRequest, match="use_stream with .*MI300X"):
        check_streams(streamed, [cards["rtx-4090"], cards["mi300x"]])
