"""What `cardfit compare` finds, what it cries about for nothing, and how fast it and `cardfit export` are.

    python benchmarks/quality.py seams 24      clips of each content: rates of detection and of false alarms
    python benchmarks/quality.py edges 24
    python benchmarks/quality.py speed         1280x720, 81 frames and ten times as many: frames/s and memory
    python benchmarks/quality.py export        three variants in one pass against one after another

Memory and time are those of a child process each, so that one does not warm the other.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import clips
import numpy as np

from cardfit import verbs
from cardfit.quality import edges, metrics, seams
from cardfit.quality.compare import _light
from cardfit.quality.where import Where

FRAMES, BLOCK = 16, 16
TILES = ((256, 64), (512, 128), (256, 32), (256, 0))
DEFECTS = {
    "clean": lambda frame, columns, rows: frame,
    "tone 1.5": partial(clips.with_tone, step=1.5),
    "line 2": partial(clips.with_lines, step=2),
    "line 1": partial(clips.with_lines, step=1),
}
CHUNK, EDGE_FRAMES = 8, 81


def seam_scores(reference: list[Any], candidate: list[Any], grid: seams.Grid) -> list[Any]:
    """As compare does it: of the candidate's own luma, and of its difference to the reference."""
    height, width = candidate[0].shape
    found = []
    for of in ("candidate", "difference"):
        sums = seams.Seams(grid, of, width, height)
        for at in range(0, len(candidate), BLOCK):
            mean = np.mean(candidate[at : at + BLOCK], axis=0, dtype=np.float32)
            if of == "difference":
                mean = mean - np.mean(reference[at : at + BLOCK], axis=0, dtype=np.float32)
            sums.add(seams.profiles(mean, grid, of))
        found += sums.scores()
    return found


def run_seams(count: int, seed: int) -> None:
    """Tone steps and lines on clean clips, clips coded before the defect, and clips coded after it."""
    tally: Counter[tuple[str, str, str]] = Counter()
    clean: list[float] = []
    for name, make in clips.CONTENT.items():
        for at in range(count):
            random = np.random.default_rng([seed, at, len(name)])
            tile, overlap = TILES[at % len(TILES)]
            grid = seams.tile_grid(clips.WIDTH, clips.HEIGHT, tile, overlap)
            raw = list(make(random, FRAMES))
            how, crf = ("plain", "coded before", "coded after")[at % 3], (18, 23, 28)[at // 3 % 3]
            start = clips.coded(raw, crf) if how == "coded before" else raw
            for defect, put in DEFECTS.items():
                shown = [put(frame, grid.xs, grid.ys) for frame in start]
                if how == "coded after":
                    shown = clips.coded(shown, 18)
                scores = seam_scores(raw, shown, grid)
                own = any(each.found for each in scores if each.of == "candidate")
                tally[defect, name, "clips"] += 1
                tally[defect, name, "alone"] += own
                tally[defect, name, "found"] += any(each.found for each in scores)
                if defect == "clean":
                    clean.append(max(each.score for each in scores))
    _table(tally, ("clips", "alone", "found"))
    print(f"highest scores of clean clips: {sorted(clean)[-5:]}; found from {seams.FOUND_SCORE}")


def edge_scores(
    reference: list[Any] | None, candidate: list[Any], at: tuple[int, ...]
) -> list[Any]:
    """As compare does it."""
    lights, last = [], None
    for number, frame in enumerate(candidate):
        luma = frame.astype(np.float32)
        here = luma, metrics.cells(luma)
        other = None if reference is None else metrics.cells(reference[number].astype(np.float32))
        lights.append(_light(here, other, last))
        last = here
    return list(edges.edge_scores(lights, at))


def run_edges(count: int, seed: int) -> None:
    """One per cent of brightness at chunk edges, alternating or once, with and without a reference."""
    tally: Counter[tuple[str, str, str]] = Counter()
    at = edges.chunk_edges(EDGE_FRAMES, CHUNK)
    for name, make in clips.CONTENT.items():
        for number in range(count):
            random = np.random.default_rng([seed, number, len(name), 1])
            raw = list(make(random, EDGE_FRAMES, (360, 640)))
            start = clips.coded(raw, 20) if number % 2 else raw
            for defect, shown in {
                "clean": start,
                "alternating": clips.with_gain(start, CHUNK, 0.01),
                "once": clips.with_gain(start, CHUNK, 0.01, once=True),
            }.items():
                alone = edge_scores(None, shown, at)
                paired = edge_scores(raw, shown, at)
                tally[defect, name, "clips"] += 1
                tally[defect, name, "alone"] += any(each.found for each in alone)
                tally[defect, name, "found"] += any(each.found for each in paired)
    _table(tally, ("clips", "alone", "found"))


def _table(tally: Counter[tuple[str, str, str]], columns: tuple[str, ...]) -> None:
    defects = list(dict.fromkeys(key[0] for key in tally))
    for defect in defects:
        for name in (*clips.CONTENT, "all"):
            names = clips.CONTENT if name == "all" else (name,)
            numbers = [sum(tally[defect, each, column] for each in names) for column in columns]
            share = " ".join(f"{100 * number / numbers[0]:6.1f} %" for number in numbers[1:])
            print(f"{defect:12} {name:10} {numbers[0]:5} clips  {columns[1]} {share} {columns[2]}")


def compare_once(reference: str, candidate: str) -> None:
    """Compare and print seconds and peak memory as JSON."""
    start, used = time.perf_counter(), time.process_time()
    found = verbs.compare(
        Path(reference), Path(candidate), where=Where(tile=256, overlap=64, chunk=8)
    )
    _print(found.frames, start, used)


def export_once(source: str, *outputs: str) -> None:
    """Export and print seconds and peak memory as JSON."""
    start, used = time.perf_counter(), time.process_time()
    found = verbs.export(Path(source), outputs, force=True)
    _print(found.frames, start, used)


def _print(frames: int, start: float, used: float) -> None:
    figures = {
        "frames": frames,
        "wall_s": time.perf_counter() - start,
        "cpu_s": time.process_time() - used,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(figures))


def _child(*words: str) -> dict[str, float]:
    ran = subprocess.run([sys.executable, __file__, *words], capture_output=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def run_speed() -> None:
    """Two clips of 81 frames, then of 810."""
    with tempfile.TemporaryDirectory() as folder:
        for frames in (81, 810):
            paths = [Path(folder) / f"{name}{frames}.mp4" for name in ("reference", "candidate")]
            for path, crf in zip(paths, (16, 22), strict=True):
                clips.write(path, clips.photo(np.random.default_rng(5), frames), crf)
            found = _child("compare-once", *map(str, paths))
            print(
                f"{frames} frames: {found['frames'] / found['wall_s']:.1f} frames/s, "
                f"{1000 * found['cpu_s'] / found['frames']:.1f} ms of CPU a frame (two cores: "
                f"{2 * found['frames'] / found['cpu_s']:.0f} frames/s), peak {found['peak_mib']:.0f} MiB"
            )


def plain_encode(source: str, encoder: str, options: str, path: str) -> None:
    """Decode and encode with PyAV and nothing else, the encoder's own defaults: what one would write by hand."""
    import os

    import av

    os.environ["SVT_LOG"] = "1"
    start, used, frames = time.perf_counter(), time.process_time(), 0
    with (
        av.open(source) as container,
        av.open(path, "w", options={"movflags": "+faststart"}) as output,
    ):
        container.streams.video[0].thread_type = "AUTO"
        own = container.streams.video[0]
        stream = output.add_stream(encoder, rate=own.average_rate, options=json.loads(options))
        stream.width, stream.height, stream.pix_fmt = own.width, own.height, "yuv420p"
        for frame in container.decode(video=0):
            frame.pict_type = 0
            output.mux(stream.encode(frame))
            frames += 1
        output.mux(stream.encode(None))
    _print(frames, start, used)


def run_export() -> None:
    """H.264, HEVC and AV1 in one pass, and one after another."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.mp4"
        clips.write(source, clips.photo(np.random.default_rng(5), 81), 12)
        names = [f"{folder}/a.mp4", f"{folder}/b.mp4,codec=hevc", f"{folder}/c.mp4,codec=av1"]
        for _ in range(3):
            together = _child("export-once", str(source), *names)
            plain = [
                _child("plain", str(source), encoder, json.dumps(options), f"{folder}/p.mp4")
                for encoder, options in (
                    ("libx264", {"crf": "18", "preset": "medium"}),
                    (
                        "libx265",
                        {"crf": "21", "preset": "medium", "x265-params": "log-level=error"},
                    ),
                    ("libsvtav1", {"crf": "28", "preset": "8"}),
                )
            ]
            wall, cpu = (sum(each[key] for each in plain) for key in ("wall_s", "cpu_s"))
            print(
                f"one pass {together['wall_s']:.2f} s (CPU {together['cpu_s']:.2f}), peak "
                f"{together['peak_mib']:.0f} MiB; one after another {wall:.2f} s (CPU {cpu:.2f}), peak "
                f"{max(each['peak_mib'] for each in plain):.0f} MiB; ratio {together['wall_s'] / wall:.2f}"
            )


def main(words: list[str]) -> None:
    """Run what was named."""
    name, *rest = words or ["speed"]
    if name in ("seams", "edges"):
        count, seed = int(rest[0]) if rest else 12, int(rest[1]) if rest[1:] else 1
        (run_seams if name == "seams" else run_edges)(count, seed)
    else:
        jobs = {"speed": run_speed, "export": run_export, "plain": plain_encode}
        jobs |= {"compare-once": compare_once, "export-once": export_once}
        jobs[name](*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
