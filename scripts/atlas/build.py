"""Build the atlas: one file a model, with every task, guidance on and off, and the VAE's settings.

    python scripts/atlas/build.py [MODEL ...] [--to FOLDER] [--jobs 2] [--again] [--ray ADDRESS]
    python scripts/atlas/build.py --more [MODEL ...]

Files that are there already and were made from the same entry and versions are left alone, so a build that was
interrupted goes on where it stood. The same versions give the same bytes. With ``--ray`` each model is a task on the
nodes of a cluster, and its files come back from there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from making import ModelBuild
from write import save

from cardfit.errors import CardfitError
from cardfit.fleet.cluster import Needs, joined
from cardfit.fleet.tasks import each
from cardfit.library import all_models, load
from cardfit.library.models import Model
from cardfit.records.files import put
from cardfit.records.models import Reason
from cardfit.trace import recorder
from cardfit.trace.atlas.read import FOLDER, entry_hash, read_file
from cardfit.trace.cache import versions

# Models that are held at single points: a search for formulas failed after many minutes (CogVideoX, SVD, Wan 2.2 I2V,
# HunyuanVideo 1.5), or was not tried on so long a pipeline.
BY_POINTS = frozenset(
    "allegro animatediff-sd1.5 cogvideox-2b cogvideox-5b cogvideox-5b-i2v cogvideox1.5-5b cogvideox1.5-5b-i2v "
    "cosmos-predict2-14b-t2i cosmos-predict2-14b-v2w cosmos-predict2-2b-t2i cosmos-predict2-2b-v2w hidream-i1 "
    "hidream-i1-dev hunyuanvideo-1.5-480p-t2v hunyuanvideo-1.5-720p-i2v kandinsky-5-t2v-lite kandinsky-5-t2v-pro ltx-2 "
    "mochi-1 modelscope-t2v-1.7b pixart-alpha pixart-alpha-512 qwen-image-edit qwen-image-edit-2511 sana-sprint-1.6b "
    "skyreels-v2-df-1.3b-540p skyreels-v2-i2v-14b-540p svd svd-xt wan2.1-i2v-14b-720p wan2.2-i2v-a14b".split()
)
SMALL = 1 << 16  # elements; what the pipeline does to larger tensors is looked at by shape only


def extend(name: str, to: Path) -> tuple[str, str]:
    """Add the other tasks and guidance to a model's file; (model, what happened)."""
    torch.set_num_threads(1)
    recorder.BETWEEN = SMALL
    model = load(name)
    path = to / f"{model.id}.xz"
    if not path.exists() or not _current(path, model):
        return name, "no file to extend"
    made = ModelBuild(model, lambda text: None, read_file(path))
    before = len(made.book.variants)
    try:
        size = save(made.more(), to, keep_tiles=True)
    except Exception as failed:  # one model must not end the build of the others
        return name, f"not extended: {type(failed).__name__}: {str(failed)[:300]}"
    lines = [f"{size / 1000:.0f} kB, {len(made.book.variants) - before} more variants"]
    return name, "\n    ".join([*lines, *(t[:200] for t in made.problems[:4])])


def build(name: str, to: Path, again: bool, usual: bool, points: bool) -> tuple[str, str]:
    """Build one model's file; (model, what happened)."""
    torch.set_num_threads(1)
    recorder.BETWEEN = SMALL
    model = load(name)
    path = to / f"{model.id}.xz"
    if not again and path.exists() and _current(path, model):
        return name, "kept"
    started = time.monotonic()
    said: list[str] = []
    made = ModelBuild(model, said.append)
    try:
        data = made.build(usual, points or name in BY_POINTS)
    except Exception as failed:  # one model must not end the build of the others
        return name, f"no file: {type(failed).__name__}: {str(failed)[:400]} {said[:3]}"
    size = save(data, to)
    took = time.monotonic() - started
    lines = [f"{size / 1000:.0f} kB, {took:.0f} s, {len(made.book.variants)} variants"]
    return name, "\n    ".join(
        [*lines, *(t[:300] for t in said[:4]), *(t[:200] for t in made.problems[:4])]
    )


def _current(path: Path, model: Model) -> bool:
    try:
        book = read_file(path)
    except CardfitError:
        return False
    return bool(book["entry"] == entry_hash(model) and book["versions"] == versions())


def away(name: str, usual: bool, points: bool) -> tuple[str, dict[str, bytes]]:
    """Build one model's files on a node: what happened, and the files, the main one last."""
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder)
        _, what = build(name, to, True, usual, points)
        paths = sorted(to.rglob("*.xz"), key=lambda path: (path.parent == to, path.name))
        return what, {path.relative_to(to).as_posix(): path.read_bytes() for path in paths}


def on_nodes(names: Sequence[str], asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Build on a cluster; the files land here as they come."""
    wanted = []
    for name in names:
        model = load(name)
        path = asked.to / f"{model.id}.xz"
        if not asked.again and path.exists() and _current(path, model):
            yield name, "kept"
        else:
            wanted.append(name)
    if not wanted:
        return
    with joined(asked.ray, note=lambda note: print(note.text, file=sys.stderr)) as cluster:
        for script in ("fit", "making", "parts", "points", "session", "split", "survey", "write"):
            # nodes have cardfit, not its scripts: these travel
            cluster.ray.cloudpickle.register_pickle_by_value(sys.modules[script])
        work = partial(away, usual=asked.usual, points=asked.points)
        for name, found in each(cluster, work, {Needs(): iter(wanted)}, fresh=True):
            if isinstance(found, Reason):
                yield name, found.text
                continue
            what, made = found
            for path, content in made.items():
                put(asked.to / path, content)
            yield name, what


def at_home(names: Sequence[str], asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Build, or with ``--more`` extend, in processes of this machine."""
    work: Callable[[str], tuple[str, str]] = partial(
        build, to=asked.to, again=asked.again, usual=asked.usual, points=asked.points
    )
    if asked.more:
        work = partial(extend, to=asked.to)
    with multiprocessing.get_context("spawn").Pool(asked.jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(work, names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--to", type=Path, default=FOLDER)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--ray", help="local, auto or HOST:PORT: build on the nodes of a Ray cluster"
    )
    parser.add_argument("--again", action="store_true")
    parser.add_argument(
        "--usual", action="store_true", help="the first task at its usual guidance only"
    )
    parser.add_argument(
        "--points", action="store_true", help="single points at once, without a search for formulas"
    )
    parser.add_argument(
        "--more",
        action="store_true",
        help="add other tasks and guidance at the usual size to the files",
    )
    asked = parser.parse_args()
    asked.to.mkdir(parents=True, exist_ok=True)
    names = asked.models or [m.id for m in all_models() if m.pipeline_in_diffusers]
    started = time.monotonic()
    built = on_nodes(names, asked) if asked.ray and not asked.more else at_home(names, asked)
    for done, (name, what) in enumerate(built, 1):
        print(
            f"[{done}/{len(names)} {time.monotonic() - started:.0f} s] {name}: {what}", flush=True
        )
    total = sum(p.stat().st_size for p in asked.to.rglob("*.xz"))
    print(f"{total / 1e6:.2f} MB in {asked.to}", file=sys.stderr)


if __name__ == "__main__":
    main()
