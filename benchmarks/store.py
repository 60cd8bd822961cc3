"""A store of many records, and many writers at once: SQLite and PostgreSQL.

    python benchmarks/store.py --records 100000 --writers 16 --each 500

Fills a store of each kind with records as runs leave them (five repetitions, every call of them), then times what
people wait for, each in a fresh process as the command line is: a filtered list, a choice of one request, a
calibration over everything, a push that finds nothing new. Then as many processes as asked write into an empty
PostgreSQL database at once: each record is to be there once. PostgreSQL is started for it, in a folder of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from cardfit.records.layout import COLUMNS, row
from cardfit.records.models import (
    Call,
    Inputs,
    Machine,
    Outcome,
    Predicted,
    PredictedStage,
    Record,
    Repetition,
    Stage,
    Weights,
)
from cardfit.records.opening import opened
from cardfit.request import ExactRequest, Settings
from cardfit.units import GIB, MIB

MODELS = [f"model-{number}" for number in range(20)] + ["flux.1-dev"]
CARDS = ["rtx-4090", "l4", "h200-sxm", "rtx-3090", "a100-80gb-sxm"]
SIDES = [512, 640, 768, 896, 1024]
CHOSEN = {"model": "flux.1-dev", "width": 1024, "height": 1024, "num_inference_steps": 8}
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = 5

_spec = importlib.util.spec_from_file_location(
    "postgres", Path(__file__).parents[1] / "tests" / "records" / "postgres.py"
)
assert _spec is not None and _spec.loader is not None
postgres: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(postgres)


def records(count: int, seed: int = 0) -> Iterator[Record]:
    """Records of many requests, settings and cards; the same for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        at = BEGIN + timedelta(seconds=60 * number)
        name = f"{at:%Y%m%dt%H%M%S}-{chance.getrandbits(32):08x}"
        yield record(name, at, chance)


def rows(count: int) -> Iterator[dict[str, Any]]:
    """``count`` records as a database keeps them: of some thousand different runs, each under ids of its own."""
    models = [(each, row(each)) for each in records(min(count, 4000))]
    for number in range(count):
        model, made = models[number % len(models)]
        at = BEGIN + timedelta(seconds=60 * number)
        name = f"{at:%Y%m%dt%H%M%S}-{number:08x}"
        before, created = (
            model.created.isoformat().replace("+00:00", "Z"),
            f"{at:%Y-%m-%dT%H:%M:%SZ}",
        )
        texts = {
            each: made[each].replace(model.id, name).replace(before, created)
            for each in ("body", "short")
        }
        digest = f"{number:032x}"
        yield {
            **made,
            **texts,
            "id": name,
            "created": at.isoformat(timespec="microseconds"),
            "hash": digest,
        }


def record(name: str, at: datetime, chance: random.Random) -> Record:
    """One run as it leaves its record: 8 steps, a first call, three steady ones."""
    side, grow = chance.choice(SIDES), chance.uniform(0.9, 1.3)
    parts = {"matmul": 4e-6 * side**2, "attention": 4e-12 * side**4, "elementwise": 1e-6 * side**2}
    base = sum(parts.values())
    repetitions = [
        repetition(phase, number, base * grow * chance.uniform(0.99, 1.01))
        for phase, number in (("first", 0), ("steady", 0), ("steady", 1), ("steady", 2))
    ]
    ended = "ok" if chance.random() < 0.9 else "oom"
    stage = PredictedStage(
        name="denoise", component="transformer", calls=8, weights_bytes=12 * GIB, activation_bytes=GIB,
        allocated_bytes=13 * GIB, reserved_bytes=14 * GIB, seconds=base, kind_seconds=parts,
    )  # fmt: skip
    model = chance.choice(MODELS)
    return Record(
        id=name, created=at, finished=True, model=model,
        request=ExactRequest(
            model=model, task="text-to-image", width=side, height=side, num_frames=1, num_inference_steps=8,
            guidance_scale=3.5, prompt_tokens=40,
        ),
        settings=Settings(vae_tiling=chance.choice([None, True]), offload=chance.choice(["none", "model"])),
        weights=Weights(kind="random"), inputs=Inputs(prompt_sha256=f"{chance.getrandbits(256):064x}"),
        versions={"cardfit": "0.1.0", "torch": "2.13.0", "diffusers": "0.42.1"}, device="cuda",
        machine=Machine(os="linux", card=chance.choice(CARDS), card_memory_bytes=24 * GIB, ram_bytes=64 * GIB),
        predicted=Predicted(
            stages=(stage,), allocated_bytes=13 * GIB, reserved_bytes=14 * GIB, host_bytes=GIB, seconds=base,
        ),
        repetitions=tuple(repetitions), outcome=Outcome(kind=ended),
    )  # fmt: skip


def repetition(phase: Any, number: int, seconds: float) -> Repetition:
    """A call of the pipeline: text encoder, eight steps, decoding."""
    seen = {"allocated_peak_bytes": 13 * GIB, "reserved_peak_bytes": 14 * GIB}
    names = [
        ("encode_prompt", "text_encoder"),
        *[("denoise", "transformer")] * 8,
        ("decode", "vae"),
    ]
    calls = tuple(
        Call(
            stage=stage,
            component=component,
            method="forward",
            at_seconds=seconds * at / 10,
            seconds=seconds / 10,
            **seen,
        )
        for at, (stage, component) in enumerate(names)
    )
    stages = tuple(
        Stage(name=stage, component=component, calls=count, seconds=seconds * count / 10, **seen)
        for stage, component, count in (
            ("encode_prompt", "text_encoder", 1),
            ("denoise", "transformer", 8),
            ("decode", "vae", 1),
        )
    )
    figures = {
        "device_used_peak_bytes": 14.4 * GIB,
        "rss_peak_bytes": 3.1 * GIB,
        "power_mean_w": 300.0,
    }
    return Repetition(
        phase=phase,
        number=number,
        seconds=seconds,
        stages=stages,
        calls=calls,
        step_seconds=(seconds / 10,) * 8,
        figures=figures,
    )


def fill(count: int, urls: dict[str, str]) -> dict[str, float]:
    """Put the records into every store; bytes of a record as it is kept."""
    import sqlalchemy

    names = ", ".join(COLUMNS)
    insert = sqlalchemy.text(
        f"INSERT INTO records ({names}) VALUES ({', '.join(f':{name}' for name in COLUMNS)})"
    )
    sizes: dict[str, float] = {"body": 0.0, "short": 0.0}
    for url in urls.values():
        with opened(url):
            pass  # makes the layout
    engines = [sqlalchemy.create_engine(url) for url in urls.values()]
    made = rows(count)
    while batch := list(islice(made, 1000)):
        for name in sizes:
            sizes[name] += sum(len(each[name]) for each in batch) / count
        for engine in engines:
            with engine.begin() as connection:
                connection.execute(insert, batch)
    for engine in engines:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")
        engine.dispose()
    return sizes


_ASK = """
import json, sys, time
from cardfit import api, verbs
from cardfit.measure import sharing
from cardfit.request import Request
what, url, chosen, other = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
asked = {
    "list": lambda: len(api.records(url, model="flux.1-dev", card="l4", outcome="ok", last=100, short=True)),
    "choose": lambda: len(verbs.choose(Request(**chosen), store=url).candidates),
    "calibrate": lambda: sum(each.time.n for each in verbs.calibrate(store=url, keep=False).cards.values()),
    "push": lambda: sharing.push(other, store=url).copies[0].same,
}[what]
if what in ("list", "choose"):
    api.records(url, last=1)  # imports, and a first connection
begun, used = time.perf_counter(), time.process_time()
found = asked()
seconds, cpu = time.perf_counter() - begun, time.process_time() - used
kib = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([found, seconds, cpu, int(kib) * 1024]))
"""


def timed(what: str, url: str, other: str) -> tuple[int, float, float, int]:
    """What came, the least seconds and CPU seconds of a few turns, and the most bytes that the process held."""
    turns = TURNS if what in ("list", "choose") else 1
    found = []
    for _ in range(turns):
        ran = subprocess.run(
            [sys.executable, "-c", _ASK, what, url, json.dumps(CHOSEN), other],
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(ran.stdout))
    least = [min(each[at] for each in found) for at in (1, 2)]
    return found[0][0], least[0], least[1], max(each[3] for each in found)


_WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import store as benchmark
from cardfit.records.opening import opened
with opened(sys.argv[2]) as base:
    for each in benchmark.records(int(sys.argv[3]), seed=int(sys.argv[4])):
        base.put(each)
    base.add_all(list(benchmark.records(50, seed=1000)))  # the same of every writer
"""


def written(url: str, writers: int, each: int) -> tuple[float, int, int]:
    """Seconds, records that are there, and ids that differ, after ``writers`` wrote ``each`` at once."""
    begun = time.perf_counter()
    here = str(Path(__file__).parent)
    running = [
        subprocess.Popen([sys.executable, "-c", _WRITE, here, url, str(each), str(seed)])
        for seed in range(1, writers + 1)
    ]
    ended = [writer.wait() for writer in running]
    seconds = time.perf_counter() - begun
    assert ended == [0] * writers, ended
    with opened(url) as base:
        found = [record.id for record in base.list()]
    return seconds, len(found), len(set(found))


def main() -> None:
    """Fill, ask, write; print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--each", type=int, default=500)
    given = parser.parse_args()
    programs = postgres.programs()
    assert programs is not None, "no PostgreSQL server is installed here"
    with (
        tempfile.TemporaryDirectory(prefix="cf-store-") as folder,
        postgres.serving(programs) as server,
    ):
        os.environ["CARDFIT_DATA"] = folder
        server.run("CREATE DATABASE many", "CREATE DATABASE crowd")
        urls = {"SQLite": f"sqlite:///{folder}/many.sqlite", "PostgreSQL": server.url("many")}
        begun = time.perf_counter()
        sizes = fill(given.records, urls)
        print(
            f"{given.records} records of {sizes['body'] / 1000:.1f} kB, {sizes['short'] / 1000:.1f} in short"
        )
        print(f"filled both in {time.perf_counter() - begun:.0f} s; load {os.getloadavg()[0]:.1f}")
        for what in ("list", "choose", "calibrate", "push"):
            for kind, url in urls.items():
                other = next(each for each in urls.values() if each != url)
                found, seconds, cpu, most = timed(what, url, other)
                print(
                    f"{what:10} {kind:11} {seconds:8.3f} s, {cpu:7.3f} s of CPU  {found} records, "
                    f"{most / MIB:.0f} MB, load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
        seconds, there, differ = written(server.url("crowd"), given.writers, given.each)
        wanted = given.writers * given.each + 50
        print(
            f"{given.writers} writers x {given.each}: {seconds:.0f} s, {wanted} written, {there} there, {differ} differ"
        )


if __name__ == "__main__":
    main()
