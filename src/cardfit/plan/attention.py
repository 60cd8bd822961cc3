"""Cards before Ampere, whose attention kernels are others: torch has no FlashAttention for them.

In: candidates and a card. Out: the candidates as such a card runs them, with the memory-efficient kernel, where that
changes what a run holds; the row says what was given. A trace knows no card, so this is another trace of the same
pipeline, made only where one call of attention would take noticeably more (a head_dim above 128).
"""

from __future__ import annotations

from dataclasses import replace

from cardfit.plan.knobs import Candidate, closed
from cardfit.plan.search import Estimates
from cardfit.plan.target import Target
from cardfit.request import Settings
from cardfit.units import MIB

FLASH_CAPABILITY = (
    8.0  # compute capability of Ampere, torch's `check_sm_version` for flash attention
)
# More in one call than this is worth a second trace; the band of an answer is wider.
MATTERS_BYTES = 32 * MIB


def has_flash(target: Target) -> bool:
    """Whether torch has FlashAttention for the card."""
    return target.compute_capability is None or target.compute_capability >= FLASH_CAPABILITY


def refuses_flash(given: Settings, target: Target) -> bool:
    """Whether flash was asked for by name on a card that has none."""
    return given.attention == "flash" and not has_flash(target)


def as_run(
    options: tuple[Candidate, ...], target: Target, estimates: Estimates
) -> tuple[Candidate, ...]:
    """``options`` with the kernel that ``target`` runs, where it is another one and takes more."""
    first = options[0].settings
    if has_flash(target) or first.attention != "sdpa":
        return options
    if estimates.trace(closed(first)).more_without_flash_bytes <= MATTERS_BYTES:
        return options
    return estimates.traceable(
        tuple(
            replace(each, settings=each.settings.model_copy(update={"attention": "efficient"}))
            for each in options
        )
    )


def as_given(settings: Settings, given: Settings) -> Settings:
    """``settings`` with the attention that was given: torch picks the card's kernel by itself."""
    return settings.model_copy(update={"attention": given.attention})
