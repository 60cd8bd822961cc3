"""What the plan needs to know of a card: a band of usable bytes, what its hardware can do, what it rents for.

`cardfit.api` makes a Target from the facts of `cards` and `offers`; the search and the verdicts
see nothing else, so they can be tested with numbers on paper. Usable bytes = CUDA total memory -
CUDA context - what a display takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cardfit.errors import Note
from cardfit.plan.answer import OfferRow

# Words of a name that a reader does not need to know the card by.
_NAME_FILLERS = re.compile(
    r"^(NVIDIA|AMD)\s+(GeForce\s+|Tesla\s+|Radeon Instinct\s+)?"
    r"|(?<=RTX PRO \d{4}) Blackwell|(?<= Ada) Generation|\s+\d+ ?GB$"
)


def short_name(name: str) -> str:
    """A card's name without the maker, the series and the size, which has its own column.

    >>> short_name("NVIDIA GeForce RTX 3060 12 GB"), short_name("NVIDIA L4")
    ('RTX 3060', 'L4')
    >>> short_name("NVIDIA RTX PRO 6000 Blackwell Server"), short_name("NVIDIA Tesla T4")
    ('RTX PRO 6000 Server', 'T4')
    """
    return _NAME_FILLERS.sub("", name)


@dataclass(frozen=True, slots=True)
class Band:
    """A figure as low / likely / high, in bytes."""

    low: int
    likely: int
    high: int

    def __post_init__(self) -> None:
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"not in order: {self.low}, {self.likely}, {self.high}")


@dataclass(frozen=True, slots=True)
class Target:
    """One card as the plan sees it.

    ``total`` is CUDA's total memory less what a display or other tenants hold, ``context`` what
    the CUDA context takes of it. Both are ``None`` where ``unverified`` says why the card gets no
    verdict. ``machine_ram_bytes`` is known only when the card stands in a machine that was read; ``ram_of`` says
    whether a container's limit is what makes it so small.
    """

    card: str
    name: str
    memory_bytes: int | None
    architecture: str | None
    compute_capability: float | None
    total: Band | None
    context: Band | None
    offers: tuple[OfferRow, ...] = ()
    unverified: Note | None = None
    machine_ram_bytes: int | None = None
    ram_of: Literal["machine", "container"] = "machine"
    tdp_w: float | None = None

    @property
    def usable(self) -> Band | None:
        """Bytes that PyTorch's allocator can reserve: surely (low), likely, at best (high)."""
        if self.total is None or self.context is None:
            return None
        return Band(
            self.total.low - self.context.high,
            self.total.likely - self.context.likely,
            self.total.high - self.context.low,
        )

    @property
    def has_bfloat16(self) -> bool:
        """Whether the tensor cores take bfloat16: compute capability 8.0 (Ampere) and later (CUDA C++ guide)."""
        return self.compute_capability is None or self.compute_capability >= 8.0
