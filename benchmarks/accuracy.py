"""Score the published measurements and write what is made of them.

    python benchmarks/accuracy.py            docs/accuracy.md, its plot, the bands that answers carry, and the errors
                                             that the tests hold
    python benchmarks/accuracy.py --check    score again, write nothing; exit 1 where a row has moved

Nothing is fitted: a row enters with its columns and leaves with an error, and the bands are order statistics of the
errors. Rows share dry runs; the first run takes minutes, a second one seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from cardfit.accuracy.bands import LEVEL, MIN_ROWS, MIN_SOURCES, Band
from cardfit.accuracy.rivals import RIVALS
from cardfit.accuracy.score import KINDS, Accuracy, Errors, ScoredRow, score
from cardfit.accuracy.scored import FILE as SCORED
from cardfit.messages import say
from cardfit.report import out
from cardfit.units import GIB

HERE = Path(__file__).parent
ROOT = HERE.parent
MEASURED = HERE / "data" / "measured.csv"
ERRORS = HERE / "data" / "errors.json"
PAGE = ROOT / "docs" / "accuracy.md"
PLOT = ROOT / "docs" / "accuracy.svg"
BANDS = ROOT / "src" / "cardfit" / "predict" / "data" / "bands.json"
MOVED_PCT = 0.005  # an error that changes by more has moved


def bands(found: Accuracy) -> dict[str, object]:
    """What `predict` ships: the band of each kind of figure and where it comes from."""
    return {
        "level": LEVEL,
        "how": "one-sided order statistics of measured / predicted - 1 over every scored row of "
        "benchmarks/data/measured.csv whose diffusers is that of its time, and every row that "
        "tells no time, whatever its error; held_out is the share of rows inside the band of all "
        "other sources",
        "bands": {kind: band.model_dump(mode="json") for kind, band in found.bands.items()},
    }


def page(found: Accuracy) -> str:
    """docs/accuracy.md."""
    parts = [
        "# Predicted against published",
        "Written by `make accuracy`. Each row is a figure somebody published, with its source in\n"
        "`benchmarks/data/measured.csv`; general rules rebuild the configuration from the columns, the pipeline is\n"
        "dry-run and replayed, and nothing is fitted to the outcome. Errors are predicted against measured.",
        f"{len(found.rows)} figures scored, {len(found.skipped)} rows not. "
        + "Versions: "
        + ", ".join(f"{name} {version}" for name, version in found.versions.items())
        + ".",
        "![predicted against measured](accuracy.svg)",
        "## By kind of figure, and simpler rules on the same rows",
        _table(
            ("figure", "rows", "median", "90 % within", "worst"),
            [_errors_row(_name(kind), found.summary[kind]) for kind in (*KINDS, *RIVALS)],
        ),
        _rivals_text(),
        "## Rows whose diffusers is that of their time",
        _matching_text(found),
        "## The bands of an answer",
        _bands_text(found),
        "## By source",
        _groups(found.by_source, "source"),
        "## By family",
        _groups(found.by_family, "family"),
        "## Rows that are not scored",
        _table(
            ("why", "rows"),
            [
                (say(f"accuracy-why-{why}"), str(count))
                for why, count in Counter(row.why.value for row in found.skipped).most_common()
            ],
        ),
        "## Every scored row",
        _rows(found.rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rivals_text() -> str:
    return (
        "The rule of thumb and the weights speak of whole runs and of denoisers by themselves. ComfyUI's published\n"
        "working memory (autumn 2026) is put in place of ours over the weights that lie on the card; InvokeAI's\n"
        "linear rule is that of its pull request 9305 and speaks of one autoencoder."
    )


def _matching_text(found: Accuracy) -> str:
    lines = [
        "A row belongs to the diffusers release that was the newest on its day. It counts here where the trace was\n"
        "made with that release, or where a comparison of that release with the installed one gave the same figures\n"
        "for its model, to 0.3 % (`make accuracy VERSIONS=...`, docs/decisions/2026-12-01-older-versions.md). The\n"
        "torchao study prints no day: it is taken as of 0.30 because its CogVideoX figure in bf16 is that of 0.30,\n"
        "so its rows support that choice as much as they test a prediction.\n",
        _table(
            ("figure", "rows", "median", "90 % within", "worst"),
            [_errors_row(_name(kind), found.summary.matching[kind]) for kind in KINDS],
        ),
        *(f"\n{note.text}." for note in found.notes),
    ]
    return "\n".join(lines)


def _bands_text(found: Accuracy) -> str:
    lines = [
        f"One-sided {LEVEL:.0%} order statistics of what measurements lay below and above the predictions, over the\n"
        f"rows whose diffusers is that of their time and the rows that tell no time, whatever their error. A kind\n"
        f"with fewer than {MIN_ROWS} rows or {MIN_SOURCES} sources takes the next wider group. *Held out* is the\n"
        "share of rows inside a band that was made without their source.\n"
    ]
    lines.append(
        _table(
            ("figure", "from", "rows", "sources", "below", "above", "held out"),
            [_band_row(kind, band) for kind, band in found.bands.items()],
        )
    )
    return "\n".join(lines)


def _band_row(kind: str, band: Band) -> tuple[str, ...]:
    held = "" if band.held_out is None else f"{100 * band.held_out:.1f} %"
    low, high = f"-{100 * band.low:.2f} %", f"+{100 * band.high:.2f} %"
    return (_name(kind), band.group, str(band.n), str(len(band.sources)), low, high, held)


def _name(kind: str) -> str:
    return say(f"accuracy-kind-{kind}")


def _groups(groups: dict[str, dict[str, Errors]], title: str) -> str:
    rows = [
        (name, *_errors_row(_name(kind), errors))
        for name, kinds in groups.items()
        for kind, errors in kinds.items()
    ]
    return _table((title, "figure", "rows", "median", "90 % within", "worst"), rows)


def _errors_row(name: str, errors: Errors) -> tuple[str, ...]:
    figures = (errors.median_abs_pct, errors.p90_abs_pct)
    worst = "" if errors.worst_pct is None else f"{errors.worst_pct:+.2f} %"
    return (name, str(errors.n), *("" if x is None else f"{x:.2f} %" for x in figures), worst)


def _rows(rows: tuple[ScoredRow, ...]) -> str:
    return _table(
        ("row", "model", "diffusers", "figure", "measured GiB", "predicted GiB", "error"),
        [
            (
                row.id,
                row.model,
                row.versions if row.matching else f"{row.versions} (another)",
                _name(row.kind),
                f"{row.measured_bytes / GIB:.3f}",
                f"{row.predicted_bytes / GIB:.3f}",
                f"{row.error_pct:+.2f} %",
            )
            for row in rows
        ],
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plot(found: Accuracy) -> str:
    """An SVG: measured against predicted, both logarithmic, with the rule of thumb in grey."""
    import altair
    import vl_convert

    ours = [
        {"measured": r.measured_bytes / GIB, "predicted": r.predicted_bytes / GIB, "figure": r.kind}
        for r in found.rows
    ]
    grey = [
        {
            "measured": r.measured_bytes / GIB,
            "predicted": r.measured_bytes / GIB * (1 + r.rivals["rule"] / 100),
            "figure": "weights x 1.15",
        }
        for r in found.rows
        if "rule" in r.rivals
    ]
    ends = [each[name] for each in ours for name in ("measured", "predicted")]
    span = [0.9 * min(ends), 1.1 * max(ends)]
    scale = altair.Scale(type="log", domain=span, clamp=True)
    kinds = [*(kind for kind in KINDS if any(r.kind == kind for r in found.rows)), "weights x 1.15"]
    colours = [*["#0072b2", "#d55e00", "#009e73", "#cc79a7"][: len(kinds) - 1], "#bbbbbb"]
    points = (
        altair.Chart(altair.Data(values=[*grey, *ours]))
        .mark_point(filled=True, opacity=0.7, size=40)
        .encode(
            x=altair.X("measured:Q", scale=scale, title="measured, GiB"),
            y=altair.Y("predicted:Q", scale=scale, title="predicted, GiB"),
            color=altair.Color(
                "figure:N", scale=altair.Scale(domain=kinds, range=colours), title=None
            ),
        )
    )
    line = (
        altair.Chart(altair.Data(values=[{"x": end, "y": end} for end in span]))
        .mark_line(color="#444444", strokeWidth=1)
        .encode(x=altair.X("x:Q", scale=scale), y=altair.Y("y:Q", scale=scale))
    )
    chart = (line + points).properties(width=460, height=460)
    return str(vl_convert.vegalite_to_svg(chart.to_json()))


def moved(found: Accuracy, before: dict[str, float]) -> list[str]:
    """Rows whose error is another than before, new or gone."""
    now = {row.id: row.error_pct for row in found.rows}
    return [
        f"{name}: {before.get(name)} -> {now.get(name)}"
        for name in sorted(now | before)
        if abs(now.get(name, 1e9) - before.get(name, -1e9)) > MOVED_PCT
    ]


def main(check: bool) -> int:
    """Score, then write or compare."""
    with out.progress(quiet=False) as progress:
        found = score(MEASURED, progress=progress)
    if check:
        changed = moved(found, json.loads(ERRORS.read_text(encoding="utf-8")))
        print("\n".join(changed) or "no row has moved")
        return 1 if changed else 0
    errors = {row.id: row.error_pct for row in found.rows}
    ERRORS.write_text(json.dumps(errors, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    BANDS.write_text(json.dumps(bands(found), indent=1) + "\n", encoding="utf-8")
    SCORED.write_text(found.model_dump_json(by_alias=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    PLOT.write_text(plot(found), encoding="utf-8")
    for kind in (*KINDS, *RIVALS):
        print("  ".join(f"{cell:>14}" for cell in _errors_row(kind, found.summary[kind])))
    print("rows whose diffusers is that of their time:")
    for kind in KINDS:
        print("  ".join(f"{cell:>14}" for cell in _errors_row(kind, found.summary.matching[kind])))
    return 0


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Score the published measurements.")
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    sys.exit(main(arguments.parse_args().check))
