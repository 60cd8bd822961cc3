"""Fit how much of a card's peak real kernels reach, from published times, and write what predictions ship.

    python benchmarks/calibrate_published.py            efficiency.json of the room predict, docs/times.md, its plot
    python benchmarks/calibrate_published.py --check    fit nothing; score with the shipped factors; exit 1 where a row
                                                        has moved

Least squares on log(predicted / measured), with a loss that grows linearly for far-off rows. A few shares hold for all
cards, each architecture may differ from them at a price (a ridge), so that one row cannot bend it. Rows: the scored
rows of benchmarks/data/times.csv, and of measured.csv those that state a time, a whole configuration and no
quantization or offload. Schemes and the spread come after, from what is left. Held out means: fitted without any row
of the model's family. No row has a factor of its own.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import times_page

from cardfit.accuracy import rebuild as memory_rules
from cardfit.accuracy import rows as memory_rows
from cardfit.accuracy.score import Errors
from cardfit.accuracy.times import estimate_of, part_of, score
from cardfit.accuracy.times_rebuild import NotTimed, TimedRun, card_of, rebuild, upcasts
from cardfit.accuracy.times_rows import read
from cardfit.accuracy.times_trace import totals_of
from cardfit.errors import CardfitError
from cardfit.predict import efficiency
from cardfit.predict.efficiency import Factors, family_of
from cardfit.predict.totals import Totals

HERE = Path(__file__).parent
TIMES = HERE / "data" / "times.csv"
MEASURED = HERE / "data" / "measured.csv"
ERRORS = HERE / "data" / "times_errors.json"
FACTORS = HERE.parent / "src" / "cardfit" / "predict" / "data" / "efficiency.json"
MOVED_PCT = 0.05
AS_OF = "2026-12-01"

# shares of all cards: where the search starts and how firmly it is held there (1 = a row 100 % off costs as much)
SHARED: dict[str, tuple[float, float]] = {
    "matmul": (0.85, 2.0),
    "convolution": (0.55, 0.07),
    "convolution_3d": (0.45, 0.5),
    "attention": (0.7, 0.07),
    "attention_flash3": (0.8, 0.3),
    "bytes": (0.7, 0.07),
    "head_dim_doubling": (1.3, 0.3),
    "launch_s": (12e-6, 0.07),
    "kernel_s": (2e-6, 1.0),
    "compiled_bytes": (0.3, 0.15),
    "compiled_launches": (0.5, 0.07),
}
# what an architecture may have of its own: factor on the shared value, and its price
OWN: dict[str, float] = {"matmul": 2.0, "attention": 0.8, "bytes": 0.3}
ARCHITECTURES = ("8.0", "8.6", "8.9", "9.0")
# FLOP per joule at the power limit (start, price). 8.9 rests on one published rate: FLUX.1-dev bf16 1024 px on an RTX
# 6000 Ada (300 W), 1.74 it/s (gathered 30 Nov 2026, page not traced): about 206 TFLOP/s of products beside the rest.
# 8.6 takes it: no power-limited card of that generation was published.
POWER: dict[str, tuple[float, float]] = {
    "8.0": (0.6e12, 0.07),
    "8.9": (0.69e12, 5.0),
    "9.0": (0.9e12, 0.07),
}
POWER_OF = {"8.6": "8.9"}
FLASH_OLD: tuple[float, float] = (1500.0, 0.07)  # 9.0: FlashAttention 2 uses Ampere's instructions
# cards whose published times beat the dense peak their sheet lists: no share of it means anything
PEAK_DOUBTED = {"l40"}
BAND = 0.90
"""Share of held-out rows that the band holds."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One published time: what ran, its sums and its seconds. ``per_call`` counts calls instead of iterations."""

    id: str
    run: TimedRun
    work: Totals
    seconds: float
    source: str
    framework: str
    per_call: bool = False


def from_times() -> list[Sample]:
    """The rows of times.csv that can be rebuilt."""
    found = []
    for row in read(TIMES)[0]:
        try:
            run = rebuild(row)
            work = totals_of(run)
        except (NotTimed, CardfitError):
            continue
        found.append(Sample(row.id, run, work, row.seconds, row.source, row.framework))
    return found


def from_measured() -> list[Sample]:
    """The rows of measured.csv that state a time and a whole configuration of diffusers.

    Those that say with adapters, without steps or with a parameter left open are left out.
    """
    with MEASURED.open(encoding="utf-8", newline="") as file:
        cells = {row["id"]: row for row in csv.DictReader(file)}
    found = []
    for row in memory_rows.read(MEASURED)[0]:
        cell = cells[row.id]
        plain = row.framework.lower() == "diffusers" and "lora" not in row.notes.lower()
        if not cell["time_s"] or not plain or (row.steps is None and row.scope == "full_pipeline"):
            continue
        run = _run_of(row, cell["compile"])
        if run is None or run.card.id in PEAK_DOUBTED:
            continue
        taken = float(cell["time_s"])
        if cell["time_kind"] == "denoise" and row.steps:
            taken /= row.steps
        name = f"measured {row.id}"
        per_call = cell["time_kind"] == "per_step"
        found.append(Sample(name, run, totals_of(run), taken, row.source, row.framework, per_call))
    return found


def _run_of(row: memory_rows.Published, compile_: str) -> TimedRun | None:
    try:
        whole = replace(row, peak_bytes=row.peak_bytes or 1)
        rebuilt = memory_rules.rebuild(whole)
        card = card_of(_card_name(row.gpu))
    except (memory_rules.NotRebuilt, NotTimed, CardfitError):
        return None
    if rebuilt.settings.offload != "none":
        return None
    settings = rebuilt.settings.model_copy(update={"compile": compile_.lower() == "yes"})
    if rebuilt.scope == "decode" and upcasts(rebuilt.model):
        vae = {**settings.dtype, rebuilt.model.vae.component: "float32"}
        settings = settings.model_copy(update={"dtype": vae})
    part = {"full": "run", "denoise": "step", "decode": "decode"}[rebuilt.scope]
    return TimedRun(rebuilt.model, rebuilt.request, settings, card, None, part)  # type: ignore[arg-type]


def _card_name(gpu: str) -> str:
    """The id that publications of times use for the name of a card."""
    low = gpu.lower().replace(" ", "-")
    known = {
        "h100": "h100-any",
        "h100-80gb": "h100-any",
        "a100-80gb": "a100-80gb-any",
        "a100-40gb": "a100-40gb-any",
        "a100-sxm4-80gb": "a100-sxm-80gb",
        "a800-sxm4-80gb": "a800-sxm-80gb",
        "h800-nvl-80gb": "h800-nvl",
        "h200": "h200-sxm",
    }
    return known.get(low, low)


def distinct(samples: Sequence[Sample]) -> list[Sample]:
    """Each time once: both files hold some."""
    seen: set[tuple[str, str, float]] = set()
    kept = []
    for each in samples:
        key = (each.run.model.id, each.run.card.id, round(each.seconds, 6))
        if key not in seen:
            seen.add(key)
            kept.append(each)
    return kept


# -- the fit -----------------------------------------------------------------------------------------------------------


def names() -> list[str]:
    """The parameters of the fit, in order."""
    own = [f"{share}@{family}" for family in ARCHITECTURES for share in OWN]
    return [*SHARED, *own, *(f"power@{family}" for family in POWER), "flash_old"]


def start() -> tuple[np.ndarray, np.ndarray]:
    """Logarithms where the search starts, and how firmly each is held."""
    values = [value for value, _ in SHARED.values()] + [1.0] * (len(ARCHITECTURES) * len(OWN))
    held = [price for _, price in SHARED.values()] + list(OWN.values()) * len(ARCHITECTURES)
    values += [value for value, _ in POWER.values()] + [FLASH_OLD[0]]
    held += [price for _, price in POWER.values()] + [FLASH_OLD[1]]
    return np.log(np.array(values)), np.array(held)


def tables(x: np.ndarray, counts: Counter[str]) -> dict[str, Factors]:
    """Factors by architecture, and ``other`` for the rest."""
    values = dict(zip(names(), np.exp(x).tolist(), strict=True))
    shared = {name: values[name] for name in SHARED}
    found = {}
    for family in (*ARCHITECTURES, "other"):
        own = {share: shared[share] * values.get(f"{share}@{family}", 1.0) for share in OWN}
        found[family] = Factors(
            **{**shared, **own},
            flop_per_joule=values.get(f"power@{POWER_OF.get(family, family)}"),
            flash_flop_per_sm_cycle=values["flash_old"] if family == "9.0" else None,
            n=counts[family],
        )
    return found


def predicted(sample: Sample, table: dict[str, Factors]) -> float:
    """Seconds of what the sample measured."""
    using = table.get(family_of(sample.run.card), table["other"])
    found = estimate_of(sample.run, sample.work, using)
    value = part_of(sample.run, found)
    if value is None:
        raise ValueError(sample.id)
    calls = sum(stage.calls for stage in sample.work.stages if stage.stage == "denoise")
    return value[1] * (sample.work.steps / calls if sample.per_call else 1.0)


def residuals(x: np.ndarray, samples: Sequence[Sample]) -> np.ndarray:
    """log(predicted / measured)."""
    table = tables(x, Counter())
    return np.array([np.log(predicted(each, table) / each.seconds) for each in samples])


def fit(samples: Sequence[Sample], x: np.ndarray | None = None, turns: int = 25) -> np.ndarray:
    """Levenberg-Marquardt with a numeric Jacobian; far-off rows weigh less each turn (soft L1 at 10 %)."""
    first, held = start()
    x = first.copy() if x is None else x.copy()
    damping = 1e-2

    def cost(at: np.ndarray, r: np.ndarray) -> float:
        return float(
            np.sum(2 * 0.01 * (np.sqrt(1 + (r / 0.1) ** 2) - 1))
            + np.sum((held * (at - first)) ** 2)
        )

    r = residuals(x, samples)
    now = cost(x, r)
    for _ in range(turns):
        jacobian = np.empty((len(samples), len(x)))
        for n in range(len(x)):
            step = x.copy()
            step[n] += 1e-3
            jacobian[:, n] = (residuals(step, samples) - r) / 1e-3
        weight = 1 / np.sqrt(1 + (r / 0.1) ** 2)
        normal = jacobian.T @ (weight[:, None] * jacobian) + np.diag(held**2)
        slope = jacobian.T @ (weight * r) + held**2 * (x - first)
        before = now
        for _ in range(6):
            change = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slope)
            there = x + np.clip(change, -0.7, 0.7)
            r_there = residuals(there, samples)
            if cost(there, r_there) < now:
                x, r, now, damping = there, r_there, cost(there, r_there), damping / 3
                break
            damping *= 4
        if before - now < 1e-4 * before:
            break
    return x


def family(sample: Sample) -> str:
    """The model's family: what is left out together."""
    return sample.run.model.family


def held_out(samples: Sequence[Sample], x: np.ndarray) -> dict[str, float]:
    """Sample id -> log(predicted / measured) from a fit without its family."""
    found = {}
    for name in sorted({family(each) for each in samples}):
        rest = [each for each in samples if family(each) != name]
        there = fit(rest, x, turns=8)
        inside = [each for each in samples if family(each) == name]
        found.update(zip((e.id for e in inside), residuals(there, inside).tolist(), strict=True))
        print(f"  without {name}: {len(inside)} rows", file=sys.stderr)
    return found


# -- quantization ------------------------------------------------------------------------------------------------------

# scheme -> the rate its products run at natively
NATIVE = {"torchao-fp8dq": "fp8", "torchao-int8dq": "int8"}
TORCHAO = "github.com/sayakpaul/diffusers-torchao README"
# what nobody published takes the cost of what unpacks alike
ALIKE = {
    "gguf-q8_0": (),
    "gguf-q4_1": (
        "gguf-q4_0", "gguf-q4_k", "gguf-q5_0", "gguf-q5_1", "gguf-q5_k", "gguf-q6_k", "gguf-q3_k", "gguf-q2_k",
    ),
    "quanto-int4": ("quanto-int2",),
}  # fmt: skip
# eager int8 with dynamic activations ran 20 times slower than bf16 on H100 (130.5 s) and 2.3 times on A100: no rule
NO_EAGER = {"torchao-int8dq"}
# what unpacking a weight to half precision moves at least, unless a compiler fuses it: a byte read, two written
CAST_BYTES = 3.0


def scheme_samples() -> dict[tuple[str, bool], list[Sample]]:
    """(scheme, compiled) -> the published times of denoisers under it, without offload."""
    found: dict[tuple[str, bool], list[Sample]] = defaultdict(list)
    for row in read(TIMES)[0]:
        try:
            run = rebuild(row)
        except (NotTimed, CardfitError):
            continue
        for name in set(run.settings.quantization.values()):
            sample = Sample(row.id, run, totals_of(run), row.seconds, row.source, row.framework)
            found[name, bool(run.settings.compile)].append(sample)
    with MEASURED.open(encoding="utf-8", newline="") as file:
        cells = {row["id"]: row for row in csv.DictReader(file)}
    for published in memory_rows.read(MEASURED)[0]:
        cell = cells[published.id]
        run_ = _run_of(published, cell["compile"]) if cell["time_s"] else None
        if run_ is None or run_.card.id in PEAK_DOUBTED or published.scope != "full_pipeline":
            continue
        for name in set(run_.settings.quantization.values()):
            # the memory rules do not tell weight-only from dynamic
            if not name.startswith("torchao") or name == "torchao-int4":
                sample = Sample(
                    f"measured {published.id}",
                    run_,
                    totals_of(run_),
                    float(cell["time_s"]),
                    published.source,
                    "",
                )
                found[name, bool(run_.settings.compile)].append(sample)
    return found


def schemes(
    table: dict[str, Factors],
    samples: dict[tuple[str, bool], list[Sample]],
    plain: Sequence[Sample],
) -> dict[str, dict[str, Any]]:
    """Bytes per weight and call that each scheme adds: the median of what its rows leave over.

    Where the same work was published unquantized on that card, by the same source first, the prediction is scaled to
    that row, so that a model's own error does not count as the scheme's.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in sorted({key for key, _ in samples}):
        entry: dict[str, Any] = {"native": NATIVE.get(name), "source": "", "n": 0}
        for compiled, label in ((False, "eager"), (True, "compiled")):
            rows = samples.get((name, compiled), [])
            entry[label] = None
            if not rows or (not compiled and name in NO_EAGER):
                continue
            over = statistics.median(_left_over(row, table, plain) for row in rows)
            least = 0.0 if compiled or name in NATIVE else CAST_BYTES
            entry[label] = round(max(least, over), 2)
            entry["n"] += len(rows)
            entry["source"] = ", ".join(sorted({entry["source"], *(r.source for r in rows)} - {""}))
        found[name] = entry
    for name, others in ALIKE.items():
        for other in others:
            if name in found:
                source = f"as {name}, a rule: {found[name]['source']}"
                found.setdefault(other, {**found[name], "source": source, "n": 0})
    return found


def _scale(sample: Sample, table: dict[str, Factors], plain: Sequence[Sample]) -> float:
    """Measured over predicted of the same work unquantized on that card; 1 where nobody published it."""

    def work(each: Sample) -> tuple[object, ...]:
        settings = each.run.settings
        return (each.run.request, each.run.card.id, bool(settings.compile), each.run.part)

    same = [each for each in plain if work(each) == work(sample)]
    same = [each for each in same if each.source == sample.source] or same
    return statistics.median([each.seconds / predicted(each, table) for each in same] or [1.0])


def _left_over(sample: Sample, table: dict[str, Factors], plain: Sequence[Sample]) -> float:
    """Bytes per quantized weight and call that explain what the row took beyond the scheme at no cost."""
    using = table.get(family_of(sample.run.card), table["other"])
    reach = using.bytes * (sample.run.card.bandwidth_bytes_per_s or 1.0)
    weights = sum(
        stage.calls * sample.work.component(stage.component).linear_elements
        for stage in sample.work.stages
        if stage.component in sample.run.settings.quantization
    )
    scaled = predicted(sample, table) * _scale(sample, table, plain)
    return (sample.seconds - scaled) * reach / weights


# -- what is written ---------------------------------------------------------------------------------------------------


def band(errors: Sequence[float]) -> dict[str, float]:
    """Measured over predicted: between what ``BAND`` of the rows lie, from log(predicted / measured)."""
    ordered = sorted(-each for each in errors)
    low, high = np.quantile(ordered, [(1 - BAND) / 2, (1 + BAND) / 2])
    return {
        "low": round(float(np.exp(low)), 4),
        "high": round(float(np.exp(high)), 4),
        "n": len(ordered),
    }


def percents(errors: Sequence[float]) -> list[float]:
    """Errors in percent from log(predicted / measured)."""
    return [round(100 * (float(np.exp(each)) - 1), 4) for each in errors]


def entry_of(used: Factors, errors: Sequence[float], sources: Sequence[str]) -> dict[str, Any]:
    """One architecture as the file holds it."""
    values = {
        name: None if (value := getattr(used, name)) is None else float(f"{value:.4g}")
        for name in used.__dataclass_fields__
        if name != "n"
    }
    found = Errors.of(percents(errors))
    return {
        **values,
        "n": used.n,
        "residual_median_pct": found.median_abs_pct,
        "residual_p90_pct": found.p90_abs_pct,
        "sources": sorted(set(sources)),
    }


def write(content: dict[str, Any]) -> None:
    """efficiency.json, which is read again from here on."""
    FACTORS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    efficiency._loaded.cache_clear()
    efficiency._factors.cache_clear()
    efficiency.scheme.cache_clear()
    efficiency.spread.cache_clear()


def calibrate() -> None:
    """Fit and write efficiency.json."""
    samples = distinct([*from_times(), *from_measured()])
    samples = [each for each in samples if not each.run.settings.quantization]
    print(f"{len(samples)} published times", file=sys.stderr)
    counts = Counter(family_of(each.run.card) for each in samples)
    x = fit(samples)
    errors = residuals(x, samples)
    table = tables(x, counts)
    out = held_out(samples, x)
    content: dict[str, Any] = {
        "schema": "cardfit.efficiency/1",
        "how": "make calibrate-published; shares of dense peak with FP32 accumulation and of listed bandwidth, by "
        "compute capability; held_out is without any row of the model's family",
        "as_of": AS_OF,
        "architectures": {
            name: entry_of(
                used,
                [e for e, s in zip(errors, samples, strict=True) if family_of(s.run.card) == name],
                [s.source for s in samples if family_of(s.run.card) == name],
            )
            for name, used in table.items()
        },
        "schemes": {},
        "spread": band(list(out.values())),
        "spread_after_record": {"low": 1.0, "high": 1.0, "n": 0},
        "held_out": Errors.of(
            percents([out[s.id] for s in samples if s.id.startswith("row")])
        ).model_dump(),
        "fitted": Errors.of(percents(errors.tolist())).model_dump(),
    }
    quantized = scheme_samples()
    content["schemes"] = {
        name: {"eager": 0.0, "compiled": 0.0, "native": NATIVE.get(name), "source": "", "n": 0}
        for name, _ in quantized
    }
    write(content)
    content["schemes"] = schemes(table, quantized, samples)
    write(content)
    found = score(TIMES)
    from cardfit.accuracy.times import after_one_record

    content["spread_after_record"] = band(
        [float(np.log1p(e / 100)) for e in after_one_record(found.rows)]
    )
    write(content)


def main(check: bool) -> int:
    """Fit, score and write, or score and compare."""
    if not check:
        calibrate()
    found = score(TIMES)
    now = {row.id: row.error_pct for row in found.rows}
    if check:
        before = json.loads(ERRORS.read_text(encoding="utf-8"))
        changed = [
            f"{name}: {before.get(name)} -> {now.get(name)}"
            for name in sorted(now | before)
            if abs(now.get(name, 1e9) - before.get(name, -1e9)) > MOVED_PCT
        ]
        print("\n".join(changed) or "no row has moved")
        return 1 if changed else 0
    ERRORS.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    times_page.write(found, json.loads(FACTORS.read_text(encoding="utf-8")))
    for name, errors in (*found.summary.items(), ("held_out", found.held_out)):
        print(name, errors.model_dump())
    print("order", found.order, "inside", found.inside)
    return 0


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Fit factors to published times.")
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    sys.exit(main(arguments.parse_args().check))
