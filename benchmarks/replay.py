"""Replay the measurements of `data/published.csv`, each of which has a bound that the tests hold.

    python benchmarks/replay.py            the table: measured, predicted, error

`what` says what a figure counts: ``full`` the whole pipeline, ``loaded`` one part with its weights, ``working`` one
part without its weights and without cuBLAS's workspace, as a warmed-up run reports "peak minus what was held".
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.predict.memory import CUBLAS_WORKSPACE_BYTES, estimate
from cardfit.request import Request, Settings
from cardfit.trace.cache import cached
from cardfit.trace.dryrun import dry_part
from cardfit.units import parse_bytes

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Replayed:
    """One published figure beside ours, in bytes; ``within_pct`` is None where the figure is only reported."""

    id: str
    kind: str
    measured_bytes: int
    predicted_bytes: int
    within_pct: float | None
    source: str

    @property
    def error_pct(self) -> float:
        """Predicted against measured, percent."""
        return 100 * (self.predicted_bytes / self.measured_bytes - 1)


def rows() -> list[dict[str, str]]:
    """The published figures as written."""
    with (HERE / "data" / "published.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(text: str) -> int | None:
    return int(text) if text else None


def replay(row: dict[str, str]) -> Replayed:
    """Dry-run and replay one row."""
    model = load(row["model"])
    asked = Request(
        model=model.id,
        width=_number(row["width"]),
        height=_number(row["height"]),
        num_frames=_number(row["num_frames"]),
        batch=int(row["batch"]),
    )
    request, _ = resolve(model, asked)
    settings = Settings.model_validate(
        {
            "dtype": {"*": row["dtype"]} if row["dtype"] else {},
            "vae_tiling": row["vae_tiling"] == "yes",
            "vae_slicing": row["vae_slicing"] == "yes",
            "offload": row["offload"],
        }
    )
    if row["what"] == "full":
        trace, _ = cached(model, request, settings)
    else:
        facts = model.vae
        frames = (1,) if facts.temporal_compression > 1 else ()
        side = facts.spatial_compression
        shape = (1, facts.latent_channels, *frames, request.height // side, request.width // side)
        trace = dry_part(model, request, settings, facts.component, row["part"], shape)
    found = estimate(trace, settings, architecture=row["architecture"] or None)
    predicted = found.allocated_bytes if row["kind"] == "allocated" else found.reserved_bytes
    if row["what"] == "working":
        predicted -= found.stages[0].weights_bytes + CUBLAS_WORKSPACE_BYTES
    measured = parse_bytes(f"{row['measured']} {row['unit']}")
    within = float(row["within_pct"]) if row["within_pct"] else None
    return Replayed(row["id"], row["kind"], measured, predicted, within, row["source"])


def main() -> None:
    """Print the table."""
    for r in (replay(row) for row in rows()):
        print(
            f"{r.id:28} {r.kind:9} {r.measured_bytes:14} {r.predicted_bytes:14} {r.error_pct:+.2f} %"
        )


if __name__ == "__main__":
    main()
