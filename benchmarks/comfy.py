"""ComfyUI's placement and seconds against what template authors measured: docs/comfy-accuracy.md.

In: benchmarks/data/comfy_measured.csv and the templates of comfyui-workflow-templates-json. Out: a page. Each row is a
workflow with the switches it was measured with, on one card: is the verdict right, how much of the card is taken, how
long does the second run take. Also how many of the package's workflows give a full request. Run:
``python benchmarks/comfy.py``.
"""

from __future__ import annotations

import csv
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cardfit import api
from cardfit.cards import load as load_cards
from cardfit.comfy.placement import rules
from cardfit.comfy.planning import plan_workflow
from cardfit.comfy.reader import read_workflow, value_of
from cardfit.units import gib_text

HERE = Path(__file__).parent
ROWS = HERE / "data" / "comfy_measured.csv"
PAGE = HERE.parent / "docs" / "comfy-accuracy.md"
SKIP = "skip: "
RAN = ("fits", "pages")


@dataclass(frozen=True, slots=True)
class Scored:
    """One row: what was measured and what was predicted, bytes and seconds."""

    id: str
    template: str
    verdict: str
    device_bytes: int
    measured_bytes: int
    seconds: float
    low: float
    high: float
    measured_s: float

    @property
    def memory_pct(self) -> float:
        """Error of the card's memory, percent."""
        return 100 * (self.device_bytes / self.measured_bytes - 1)

    @property
    def seconds_pct(self) -> float:
        """Error of the second run's seconds, percent."""
        return 100 * (self.seconds / self.measured_s - 1)


def templates() -> Path:
    """The folder of the installed package's workflows."""
    spec = importlib.util.find_spec("comfyui_workflow_templates_json")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("pip install comfyui-workflow-templates-json")
    return Path(next(iter(spec.submodule_search_locations))) / "templates"


def rows() -> list[dict[str, str]]:
    """The measured rows as they stand in the file."""
    with ROWS.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def score(row: dict[str, str]) -> Scored:
    """Plan the row's workflow on its card."""
    pairs = (word.partition("=") for word in row["answers"].split(";") if word)
    answers = {name: value_of(value) for name, _, value in pairs}
    reading = read_workflow(templates() / f"{row['template']}.json", answers)
    (planned,) = plan_workflow(reading, api.plan, cards=[row["card"]]).plans
    if planned.answer is None:
        raise SystemExit(f"{row['id']}: {planned.why}")
    (found,) = planned.answer.cards
    card = load_cards()[row["card"]]
    assert found.device_bytes is not None and found.seconds is not None and card.memory_bytes
    return Scored(
        id=row["id"],
        template=row["template"],
        verdict=found.verdict,
        device_bytes=found.device_bytes,
        measured_bytes=round(card.memory_bytes * float(row["vram_percent"]) / 100),
        seconds=found.seconds.likely,
        low=found.seconds.low,
        high=found.seconds.high,
        measured_s=float(row["second_s"]),
    )


def coverage() -> tuple[int, int, int, int]:
    """Workflows in all; that make a picture or video here; full requests; questions about a loaded file only."""
    total = local = full = asks = 0
    for path in sorted(templates().glob("*.json")):
        raw = json.loads(path.read_text(encoding="utf-8"))
        if not (isinstance(raw, dict) and "nodes" in raw):
            continue
        total += 1
        found = read_workflow(path)
        if not found.requests:
            continue
        local += 1
        if all(each.complete for each in found.requests):
            full += 1
        elif all("how large" in each.why for each in found.missing):
            asks += 1
    return total, local, full, asks


def page(scored: list[Scored], skipped: list[dict[str, str]]) -> str:
    """The page."""
    total, local, full, asks = coverage()
    table = [
        "| row | workflow | verdict | card taken | measured | error | second run | band | measured | error |"
    ]
    table.append("|---|---|---|---|---|---|---|---|---|---|")
    for each in scored:
        table.append(
            f"| {each.id} | {each.template} | {each.verdict} | {gib_text(each.device_bytes)} | "
            f"{gib_text(each.measured_bytes)} | {each.memory_pct:+.0f} % | {each.seconds:.0f} s | "
            f"{each.low:.0f}..{each.high:.0f} | {each.measured_s:.0f} s | {each.seconds_pct:+.0f} % |"
        )
    memory = [abs(each.memory_pct) for each in scored]
    seconds = [abs(each.seconds_pct) for each in scored]
    right = sum(each.verdict in RAN for each in scored)
    parts = [
        "# ComfyUI: read and predicted",
        "Written by `python benchmarks/comfy.py`. The measured rows are notes that template authors left in their\n"
        "workflows, with the source in `benchmarks/data/comfy_measured.csv`; a row that was copied into several files\n"
        "counts once. All are of one card (RTX 4090 D, 24 GB), so they say little of paging.",
        "## Measured rows",
        "\n".join(table),
        f"{right} of {len(scored)} verdicts right. Memory: median error {median(memory):.0f} %, worst "
        f"{max(memory):.0f} %. Second run: median {median(seconds):.0f} %, worst {max(seconds):.0f} %.",
        "\n".join(
            f"- {each['id']} is not scored: {each['note'].removeprefix(SKIP)}." for each in skipped
        ),
        "The memory of a card that is measured holds what PyTorch keeps beside what lives; predicted is what lives\n"
        "and the CUDA context. Two rules come from these rows and from nowhere else, so the errors are in-sample:\n"
        "scaled fp8 files are timed as fp8 arithmetic where the card has it (with half precision the 20-step row of\n"
        "Wan 2.2 would need 99 % of the card's dense rate), and weights that have to come back to the card come at\n"
        f"{rules().move_bytes_per_s / 1e9:g} GB/s, the least squares of the log errors.",
        "## Files read",
        f"Of {total} workflows in comfyui-workflow-templates-json none crashes the reader. {local} make a picture or\n"
        f"video with models at hand: {full} give a full request, {asks} ask only for the size, frames or rate of a\n"
        f"file that they load, {local - full - asks} ask for something else "
        f"({100 * (full + asks) / local:.1f} % are full or ask for exactly what is missing).",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Score the rows and write the page."""
    every = rows()
    skipped = [row for row in every if row["note"].startswith(SKIP)]
    scored = [score(row) for row in every if row not in skipped]
    PAGE.write_text(page(scored, skipped), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
