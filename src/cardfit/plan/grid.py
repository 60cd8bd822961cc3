"""Verdicts of all settings on all cards at once: the rules of `cardfit.plan.verdict` on arrays.

In: estimates, one a setting, and cards. Out: an array of verdicts, settings down, cards across, each the one that
`judge` gives for the pair. A replay is what costs; a comparison takes nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cardfit.plan.answer import Verdict
from cardfit.plan.search import LATER_MORE_BYTES, architecture_class
from cardfit.plan.target import Band, Target
from cardfit.plan.verdict import ORDER, Host, ram_at_most_bytes
from cardfit.predict.estimate import MemoryEstimate

FITS, TIGHT, SPILLS, NOT = (
    ORDER.index(each) for each in ("fits", "tight", "spills", "does_not_fit")
)
UNSURE = -1  # only a replay for the card's own architecture tells
Codes = NDArray[np.int8]


def verdict_of(code: int) -> Verdict:
    """The verdict that a code of `verdicts` stands for."""
    return ORDER[code]


def verdicts(
    estimates: Sequence[MemoryEstimate],
    usable: Sequence[Band],
    host: Host,
    *,
    more_bytes: int = 0,
) -> Codes:
    """Codes of `ORDER`, ``(len(estimates), len(usable))``; ``more_bytes`` are reserved on top of every estimate.

    ``host`` is the machine around every card.
    """
    column = np.array([each.reserved_bytes for each in estimates], dtype=np.int64)[:, None]
    high = np.array([each.reserved_high_bytes for each in estimates], dtype=np.int64)[:, None]
    low = np.array([each.low for each in usable], dtype=np.int64)[None, :]
    likely = np.array([each.likely for each in usable], dtype=np.int64)[None, :]
    over = column + more_bytes - likely
    found = np.full(over.shape, NOT, dtype=np.int8)
    ram = host.ram_bytes
    if host.os == "windows" and ram is not None:
        found[over <= ram // 2] = SPILLS
    found[over <= 0] = TIGHT
    surely = (high + more_bytes <= low) & (over <= 0)
    if ram is not None:
        at_most = np.array([ram_at_most_bytes(each, host) for each in estimates], dtype=np.int64)
        surely &= (at_most <= ram)[:, None]
    found[surely] = FITS
    found[_walled(estimates, host)] = NOT
    return found


def _walled(estimates: Sequence[MemoryEstimate], host: Host) -> NDArray[np.bool_]:
    """Which settings the machine around the card is too small for."""
    needs = np.array([each.host_bytes for each in estimates], dtype=np.int64)
    disks = np.array([each.offload_disk_bytes for each in estimates], dtype=np.int64)
    walled = np.zeros(len(estimates), dtype=np.bool_)
    if host.ram_bytes is not None:
        walled |= needs > host.ram_bytes
    if host.disk_bytes is not None:
        walled |= host.files_bytes + disks > host.disk_bytes
    return walled


def on_targets(estimates: Sequence[MemoryEstimate], targets: Sequence[Target], host: Host) -> Codes:
    """`verdicts` on cards whose facts are known, of any architecture.

    The estimates are those of cards before Hopper. Where the larger workspace of a later one could change the
    verdict the code is `UNSURE`.
    """
    usable = [each.usable for each in targets]
    known = [each for each in usable if each is not None]
    if len(known) < len(usable):
        raise ValueError("a card without facts has no verdict")
    found = verdicts(estimates, known, host)
    later = np.array([architecture_class(each.architecture) is not None for each in targets])
    more = verdicts(estimates, known, host, more_bytes=LATER_MORE_BYTES)
    found[(found != more) & later[None, :]] = UNSURE
    return found
