"""Seconds that bytes take on their way: over the link for offload, from disk at load, into a file at export.

In: `Totals`, settings, a card and what is known of the machine. Out: seconds by stage, and whether they hide behind
compute. Rates are what programs reach, not what a link is sold as; each has its source. Left out: other traffic on
the link, and a link that trained down (give the one found).
"""

from __future__ import annotations

from dataclasses import dataclass

from cardfit.cards import Card
from cardfit.predict.placement import streams
from cardfit.predict.totals import StageWork, Totals
from cardfit.request import Settings

# pinned copies to the card, bytes/s a lane: 6.15 GB/s on gen3 x8, 23.9 on gen4 x16, about 57 on gen5 x16 (public bug
# reports and benchmarks, gathered 30 Nov 2026)
PINNED_BYTES_PER_S_LANE = {3: 0.77e9, 4: 1.49e9, 5: 3.56e9}
# pageable copies: about half of pinned near the ceiling (same sources), and no more than one host thread copies:
# FLUX.1-dev on H100, model offload 20 s against 12 s for two ways of 33.5 GB (Flux quantization study, Hugging Face)
PAGEABLE_SHARE = 0.5
PAGEABLE_BYTES_PER_S = 8.4e9
# layer by layer: 8.66 of 14.68 GB/s in copies of 2.7 MB (public benchmark); FLUX.1-dev leaf offload on L40, 12.8 GB/s
# of 23.9 (diffusers/benchmarks)
LEAF_SHARE = 0.55
# a half-precision weight under a scheme, scales included
STORED_SHARE = (
    ("int8", 0.51), ("fp8", 0.5), ("q8", 0.53), ("q6", 0.41), ("q5", 0.35), ("nf4", 0.28), ("int4", 0.28),
    ("q4", 0.3), ("nvfp4", 0.28), ("q3", 0.22), ("q2", 0.18), ("int2", 0.16),
)  # fmt: skip
# what an H.264 file takes of the host with libx264's defaults, pixels/s of a few cores: a rule, not fitted
EXPORT_PIXELS_PER_S = 30e6
# what diffusers' processors take of the host before that: to NumPy, scaled, to bytes, to PIL. 20 to 37e6 pixels/s of
# processor time on one x86 server (`benchmarks/host_post.py`, diffusers 0.42.1): a rule, not fitted
POST_PIXELS_PER_S = 30e6


@dataclass(frozen=True, slots=True)
class Link:
    """What the way to the card carries, in bytes per second, and whether that was ``found`` or ``listed``."""

    pinned_bytes_per_s: float
    pageable_bytes_per_s: float
    basis: str = "found"


@dataclass(frozen=True, slots=True)
class Host:
    """What is known of the machine around the card; None is unknown."""

    disk_bytes_per_s: float | None = None
    export_pixels_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Moves:
    """Seconds that one stage of one component waits for weights; ``hidden`` behind compute where they are streamed."""

    seconds: float
    bytes: float
    hidden: bool


def listed_link(card: Card) -> Link | None:
    """The link as the card's sheet lists it; None where generation or lanes are not known.

    >>> from cardfit.cards import load
    >>> round(listed_link(load()["rtx-4090"]).pinned_bytes_per_s / 1e9, 1)
    23.8
    """
    per_lane = PINNED_BYTES_PER_S_LANE.get(card.pcie_gen or 0)
    if per_lane is None or card.pcie_lanes is None:
        return None
    pinned = per_lane * card.pcie_lanes
    return Link(pinned, min(PAGEABLE_SHARE * pinned, PAGEABLE_BYTES_PER_S), "listed")


def stored_bytes(totals: Totals, settings: Settings, name: str) -> float:
    """Bytes of a component's weights as its scheme stores them, to a few percent."""
    part = totals.component(name)
    scheme = settings.quantization.get(name, "none")
    share = next((share for word, share in STORED_SHARE if word in scheme), 1.0)
    return part.weights_bytes - (1 - share) * min(part.weights_bytes, 2 * part.linear_elements)


def moves(totals: Totals, settings: Settings, stage: StageWork, link: Link) -> Moves:
    """What ``stage`` waits for its component's weights under the offload of ``settings``.

    Model offload brings a component in and takes it back each time the pipeline turns to it; the other modes bring
    weights in at every call and drop them.
    """
    weights = stored_bytes(totals, settings, stage.component)
    match settings.offload or "none":
        case "none":
            if not settings.blocks_to_swap:
                return Moves(0.0, 0.0, hidden=False)
            blocks = max(1, totals.component(stage.component).blocks)
            swapped = weights * min(1.0, settings.blocks_to_swap / blocks)
            size = stage.calls * swapped if stage.stage == "denoise" else 0.0
            return Moves(size / link.pinned_bytes_per_s, size, hidden=True)
        case "model":
            visits = totals.visits.count(stage.component)
            share = stage.calls / totals.calls(stage.component)
            size = 2.0 * visits * weights * share
            return Moves(size / link.pageable_bytes_per_s, size, hidden=False)
        case "sequential":
            size = float(stage.calls * weights)
            rate = link.pageable_bytes_per_s
            return Moves(size / rate, size, hidden=False)
        case mode:
            size = float(stage.calls * weights)
            share = LEAF_SHARE if mode == "group-leaf" else 1.0
            if streams(settings):
                return Moves(size / (link.pinned_bytes_per_s * share), size, hidden=True)
            return Moves(size / link.pageable_bytes_per_s, size, hidden=False)


def load_s(totals: Totals, host: Host | None, link: Link | None, *, resident: bool) -> float | None:
    """Seconds until the weights are in place: read from disk, and over the link where they stay on the card.

    None where the disk's rate is not known.
    """
    if host is None or host.disk_bytes_per_s is None:
        return None
    size = sum(part.weights_bytes for part in totals.components)
    over = size / link.pageable_bytes_per_s if resident and link is not None else 0.0
    return size / host.disk_bytes_per_s + over


def post_s(totals: Totals) -> float:
    """Seconds that the pipeline's post-processing takes on the host once the decoder is done."""
    return totals.batch * totals.frames * totals.pixels / POST_PIXELS_PER_S


def export_s(totals: Totals, host: Host | None) -> float:
    """Seconds to encode the frames on the host."""
    rate = (host.export_pixels_per_s if host else None) or EXPORT_PIXELS_PER_S
    return totals.batch * totals.frames * totals.pixels / rate
