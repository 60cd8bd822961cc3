"""Replay the published measurements of `data/published.csv` and derive the band that answers carry.

    python benchmarks/replay.py            the table: measured, predicted, error
    python benchmarks/replay.py --write    also src/cardfit/predict/data/bands.json and docs/accuracy.md

`what` says what a figure counts: ``full`` the whole pipeline, ``loaded`` one part with its weights, ``working`` one
part without its weights and without cuBLAS's workspace, as a warmed-up run reports "peak minus what was held".
"""

from __future__ import annotations

import csv
import json
import math
import sys
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
ROOT = HERE.parent
LEVEL = 0.95  # one-sided
# Rows made by code that runs differently today (offload and decoding of 2023 and 2024), or whose configuration is
# doubtful: reported, not part of the band.
OTHER_CODE = ("sdxl-4-slicing", "sdxl-4-model", "cogvideox-5b", "cogvideox-2b")


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


def one_sided(residuals: list[float]) -> float:
    """The smallest residual that at least 95 % of a new one's peers stay under (order statistic), at least zero."""
    ordered = sorted(residuals)
    index = min(len(ordered), math.ceil(LEVEL * (len(ordered) + 1))) - 1
    return max(0.0, ordered[index])


def band(found: list[Replayed]) -> dict[str, object]:
    """How far below and above a prediction a measurement lay, one-sided 95 %, over all rows that are understood."""
    found = [r for r in found if r.id not in OTHER_CODE]
    relative = [r.measured_bytes / r.predicted_bytes - 1 for r in found]
    return {
        "reserved_low": round(one_sided([-x for x in relative]), 4),
        "reserved_high": round(one_sided(relative), 4),
        "level": LEVEL,
        "n": len(found),
        "sources": sorted({r.source.split(",")[0].split(" (")[0] for r in found}),
        "left_out": list(OTHER_CODE),
        "how": "residuals of benchmarks/data/published.csv, allocated and reserved together, not held out",
    }


def page(found: list[Replayed], derived: dict[str, object]) -> str:
    """docs/accuracy.md."""
    head = (
        "# Predicted against published\n\n"
        "Written by `python benchmarks/replay.py --write`. Each row is a figure somebody published,\n"
        "with its source in `benchmarks/data/published.csv`; nothing is fitted to them. Rows without a\n"
        "bound are reported, not required: the reasons stand in the source column of the data.\n\n"
        "| figure | kind | measured GiB | predicted GiB | error | bound |\n|---|---|---|---|---|---|\n"
    )
    lines = []
    for r in found:
        gib = [b / parse_bytes("1 GiB") for b in (r.measured_bytes, r.predicted_bytes)]
        bound = f"{r.within_pct:g} %" if r.within_pct is not None else "reported"
        lines.append(
            f"| {r.id} | {r.kind} | {gib[0]:.3f} | {gib[1]:.3f} | {r.error_pct:+.2f} % | {bound} |"
        )
    low, high = (100 * float(str(derived[f"reserved_{side}"])) for side in ("low", "high"))
    tail = (
        f"\n\nThe band of every answer comes from {derived['n']} of these residuals (one-sided 95 %):\n"
        f"measurements lay up to {low:.1f} % below and {high:.1f} % above the prediction.\n"
    )
    return head + "\n".join(lines) + tail


def main(write: bool) -> None:
    """Print the table; with ``write`` keep the band and the page."""
    found = [replay(row) for row in rows()]
    for r in found:
        print(
            f"{r.id:28} {r.kind:9} {r.measured_bytes:14} {r.predicted_bytes:14} {r.error_pct:+.2f} %"
        )
    derived = band(found)
    print(json.dumps(derived, indent=1))
    if write:
        target = ROOT / "src" / "cardfit" / "predict" / "data" / "bands.json"
        target.write_text(json.dumps(derived, indent=1) + "\n", encoding="utf-8")
        (ROOT / "docs" / "accuracy.md").write_text(page(found, derived), encoding="utf-8")


if __name__ == "__main__":
    main("--write" in sys.argv[1:])
