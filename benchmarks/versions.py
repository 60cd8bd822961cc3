"""Trace the rows of one diffusers series with that diffusers, and keep what differs from today as data.

    make accuracy VERSIONS="0.30.3 0.32.2"    an environment for each, and both steps below
    python benchmarks/versions.py --trace TO  in the older environment: every configuration of its time into folder TO
    python benchmarks/versions.py --keep FROM...   with today's versions: compare and write the package's own folder
    python benchmarks/versions.py --pins V    the packages of an environment for diffusers V

In: benchmarks/data/measured.csv. Both releases are replayed with today's rules; a model whose allocated or reserved
peak differs by more than 0.3 % in any configuration keeps its traces, every other one the distance. A configuration
that a release cannot run is named on stderr and left out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from cardfit.accuracy import kept
from cardfit.accuracy.older import series_of, series_of_version
from cardfit.accuracy.rebuild import NotRebuilt, Rebuilt, rebuild
from cardfit.accuracy.rows import read
from cardfit.accuracy.runs import Run, Runs, todays
from cardfit.errors import BadFile, CardfitError
from cardfit.library import load as load_model
from cardfit.library.rules import resolve
from cardfit.request import Dtype, Request, Settings
from cardfit.trace import cache

HERE = Path(__file__).parent
MEASURED = HERE / "data" / "measured.csv"
FOLDER = HERE.parent / "src" / "cardfit" / "accuracy" / "data" / "versions"

# What stood beside each release: the newest transformers and accelerate of its months. torch is today's: what it
# allocates on meta is decided by the code above it. 0.21 imports names that huggingface_hub 0.26 dropped.
PINS: dict[str, tuple[str, ...]] = {
    "0.21": ("transformers==4.34.1", "accelerate==0.23.0", "huggingface_hub<0.24"),
    "0.29": ("transformers==4.42.4", "accelerate==0.32.1"),
    "0.30": ("transformers==4.44.2", "accelerate==0.34.2"),
    "0.31": ("transformers==4.46.3", "accelerate==1.1.1"),
    "0.32": ("transformers==4.48.3", "accelerate==1.3.0"),
    "0.33": ("transformers==4.51.3", "accelerate==1.6.0"),
    "0.39": ("transformers==5.14.1", "accelerate==1.14.0"),
}
# Models whose memory a release changed are covered beyond the rows: dtypes, tiles, slices, and the decode alone.
BEYOND: dict[str, tuple[str, ...]] = {"0.30": ("cogvideox-2b", "cogvideox-5b")}
_DTYPES: tuple[Dtype, ...] = ("bfloat16", "float16")


def pins(version: str) -> tuple[str, ...]:
    """The packages of an environment for diffusers ``version``; KeyError for a series without pins."""
    ours = ("pydantic>=2.10", "PyYAML>=6.0.1", "psutil>=5.9", "sentencepiece", "protobuf")
    return (f"diffusers=={version}", *PINS[series_of_version(version)], *ours)


def of_rows(series: str) -> Iterator[Rebuilt]:
    """The configurations of all rows of the time of ``series``."""
    for row in read(MEASURED)[0]:
        if series_of(row) == series:
            try:
                yield rebuild(row)
            except NotRebuilt:
                continue


def beyond(series: str) -> Iterator[Rebuilt]:
    """Configurations that other rows of the same models may have, at the models' own size."""
    for name in BEYOND.get(series, ()):
        model = load_model(name)
        request, _ = resolve(model, Request(model=name))
        for dtype, tiling, slicing, alone in product(_DTYPES, *[(False, True)] * 3):
            settings = Settings(
                dtype={"*": dtype}, offload="none", vae_tiling=tiling, vae_slicing=slicing
            )
            yield Rebuilt(model, request, settings, "decode" if alone else "full", None)


def trace(to: Path) -> int:
    """Trace every configuration of the installed release's time into the folder ``to``."""
    versions = cache.versions()
    series = series_of_version(versions["diffusers"])
    found: dict[str, kept.KeptTrace] = {}
    shutil.rmtree(to, ignore_errors=True)
    for rebuilt in (*of_rows(series), *beyond(series)):
        shape = kept.Shape.of(rebuilt)
        if shape.key in found:
            continue
        try:
            print(shape.key, file=sys.stderr, flush=True)
            name = kept.store(to, todays(rebuilt))
        except CardfitError as failed:
            print(f"left out: {failed}", file=sys.stderr)
            continue
        found[shape.key] = kept.KeptTrace(series=series, shape=shape, file=name)
    release = kept.Release(versions=versions, models={})
    kept.save(to, kept.Index(series={series: release}, traces=tuple(found.values())))
    print(f"diffusers {versions['diffusers']}: {len(found)} traces")
    return 0


def compare(found: kept.Kept, series: str) -> dict[str, kept.Checked]:
    """Model -> the farthest that today's figures lie from those of ``series``."""
    then, now = Runs(found), Runs(kept.Kept())
    pairs: dict[str, dict[str, tuple[float, float]]] = {}
    for rebuilt in (*of_rows(series), *beyond(series)):
        if found.name(series, rebuilt) is None:
            continue
        what = f"{rebuilt.settings.model_dump_json()} {kept.Shape.of(rebuilt).key}"
        model = pairs.setdefault(rebuilt.model.id, {})
        if what not in model:
            print(f"{series} {rebuilt.model.id}", file=sys.stderr, flush=True)
            model[what] = _distance(then.of(rebuilt, series), now.of(rebuilt, series))
    return {
        name: kept.Checked(
            configurations=len(each),
            allocated_pct=_farthest(allocated for allocated, _ in each.values()),
            reserved_pct=_farthest(reserved for _, reserved in each.values()),
        )
        for name, each in pairs.items()
    }


def _distance(then: Run, now: Run) -> tuple[float, float]:
    old, new = then.memory, now.memory
    return (
        100 * (new.allocated_bytes / old.allocated_bytes - 1),
        100 * (new.reserved_bytes / old.reserved_bytes - 1),
    )


def _farthest(values: Iterable[float]) -> float:
    farthest: float = max(values, key=abs)
    return round(farthest, 4)


def keep(folders: list[Path]) -> int:
    """Compare the traces in ``folders`` with today's and write the package's folder; other series stay as they are."""
    try:
        before = kept.load(FOLDER).index
    except BadFile as stale:  # of another layout: only what is traced anew can be kept
        print(stale, file=sys.stderr)
        before = kept.Index()
    series, traces = dict(before.series), list(before.traces)
    for folder in folders:
        found = kept.load(folder)
        for name, release in found.index.series.items():
            models = compare(found, name)
            series[name] = kept.Release(versions=release.versions, models=models)
            traces = [each for each in traces if each.series != name]
            moved = {model for model, checked in models.items() if not checked.same}
            FOLDER.mkdir(parents=True, exist_ok=True)
            for each in found.index.traces:
                if each.shape.model in moved:
                    shutil.copyfile(folder / each.file, FOLDER / each.file)
                    traces.append(each)
            print(
                f"{name}: {len(models)} models compared, moved: {', '.join(sorted(moved)) or '-'}"
            )
    kept.save(FOLDER, kept.Index(series=series, traces=tuple(traces)))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Keep traces of older releases of diffusers.")
    parser.add_argument("--trace", metavar="TO", type=Path, help="trace the installed release")
    parser.add_argument("--keep", metavar="FROM", type=Path, nargs="+", help="compare with today")
    parser.add_argument("--pins", metavar="VERSION", help="print the packages of an environment")
    arguments = parser.parse_args()
    if arguments.pins:
        print(" ".join(pins(arguments.pins)))
        sys.exit(0)
    if arguments.trace:
        sys.exit(trace(arguments.trace))
    if arguments.keep:
        sys.exit(keep(arguments.keep))
    parser.error("name one of --trace, --keep and --pins")
