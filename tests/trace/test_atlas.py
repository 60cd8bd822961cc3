"""The shipped traces: what they hold is what a dry run gives, and what they do not hold is said."""

from __future__ import annotations

import json
import lzma
import os
import random
import subprocess
import sys
from importlib.metadata import version

import pytest

from cardfit.errors import BadFile, MissingExtra
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.plan.knobs import closed
from cardfit.predict.memory import estimate
from cardfit.predict.totals import head_dim_of, totals
from cardfit.request import Request, Settings
from cardfit.trace import atlas, source, tested
from cardfit.trace.atlas import read
from cardfit.trace.atlas.compose import Gap
from cardfit.trace.atlas.domain import Domain
from cardfit.trace.dryrun import dry_run
from cardfit.trace.stream import Op, Trace

FILES = sorted(read.FOLDER.glob("*.xz"))
PLAIN = closed(Settings())


def points(count, seed):
    """Requests off any grid of sizes, frames, batch and steps that the build looked at."""
    source_ = random.Random(seed)
    found = []
    while len(found) < count:
        model = load(source_.choice(FILES).stem)
        book = atlas.book_of(model.id)
        variant = source_.choice(book["variants"])
        domain = Domain.of(variant["domain"])
        if domain.steps and domain.many_from is None:
            steps = source_.choice(domain.steps)
        else:
            steps = source_.randint(domain.many_from, 60)
        width, height = domain.draw(source_)
        guidance = model.defaults.guidance_scale
        if variant["guided"] != "any":
            guidance = max(guidance, 1.5) if variant["guided"] == "on" else min(guidance, 1.0)
        request = Request(
            model=model.id,
            task=variant["task"],
            width=width,
            height=height,
            num_frames=source_.choice(domain.frame_counts) if model.is_video else None,
            batch=source_.randint(1, domain.batch),
            num_inference_steps=steps,
            guidance_scale=guidance,
        )
        exact = resolve(model, request)[0]
        settings = closed(Settings(vae_tiling=model.vae.tiling_required))
        if isinstance(trace := atlas.find(model, exact, settings), Trace):
            found.append((model, exact, settings, trace))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_file_speaks_for_its_entry_and_the_tested_versions(path):
    book = read.read_file(path)
    assert book["model"] == path.stem
    assert book["entry"] == read.entry_hash(load(path.stem)), "made from another entry: make atlas"
    wanted = tested.versions()
    assert {n: v.partition("+")[0] for n, v in book["versions"].items()} == {
        name: wanted[name] for name in book["versions"]
    }


def test_all_files_together_are_small():
    assert 0 < sum(path.stat().st_size for path in read.FOLDER.rglob("*.xz")) <= 10_000_000


@pytest.mark.parametrize("model", [path.stem for path in FILES])
def test_the_model_as_it_is_usually_asked_for_needs_no_dry_run(model):
    entry = load(model)
    exact = resolve(entry, Request(model=model))[0]
    tiled = closed(Settings(vae_tiling=entry.vae.tiling_required))
    found = atlas.find(entry, exact, tiled)
    assert isinstance(found, Trace), found
    assert found.basis == "atlas"


@pytest.mark.parametrize("seed", range(6))
def test_what_is_composed_is_what_a_dry_run_gives(seed):
    ((model, exact, settings, composed),) = points(1, seed)
    fresh = dry_run(model, exact, settings)
    mine, real = estimate(composed, settings), estimate(fresh, settings)
    assert mine.allocated_bytes == pytest.approx(real.allocated_bytes, rel=0.005)
    assert mine.reserved_bytes == pytest.approx(real.reserved_bytes, rel=0.005)
    assert [s.calls for s in mine.stages] == [s.calls for s in real.stages]
    for one, other in zip(mine.stages, real.stages, strict=True):
        assert one.allocated_bytes == pytest.approx(other.allocated_bytes, rel=0.005)
        assert one.reserved_bytes == pytest.approx(other.reserved_bytes, rel=0.005)
    for offload in ("model", "sequential"):
        moved = settings.model_copy(update={"offload": offload})
        mine, real = estimate(composed, moved), estimate(fresh, moved)
        assert mine.reserved_bytes == pytest.approx(real.reserved_bytes, rel=0.005)
    head = head_dim_of(model)
    one, other = totals(composed, head_dim=head), totals(fresh, head_dim=head)
    work = [(w.kind, w.dtype, w.flop, w.bytes, w.launches) for s in one.stages for w in s.work]
    wanted = [(w.kind, w.dtype, w.flop, w.bytes, w.launches) for s in other.stages for w in s.work]
    assert [w[:2] for w in work] == [w[:2] for w in wanted]
    for mine_, real_ in zip(work, wanted, strict=True):
        assert mine_[2:] == pytest.approx(real_[2:], rel=0.01)
    assert composed.more_without_flash_bytes == fresh.more_without_flash_bytes


def tiled_points():
    """Every size that decoding in tiles is held for: model, width, height, frames."""
    return [
        (path.stem, *map(int, size.split("x")))
        for path in sorted((read.FOLDER / read.TILES).glob("*.xz"))
        for size in read.tiles_in(path.stem)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_decoding_in_tiles_is_what_a_dry_run_gives(seed):
    most = 900 * 900  # larger ones take a dry run of many tiles
    small = [each for each in tiled_points() if each[1] * each[2] <= most and each[3] <= 81]
    name, width, height, frames = random.Random(seed).choice(small)
    model = load(name)
    request = Request(
        model=name, width=width, height=height, num_frames=frames if model.is_video else None
    )
    exact, settings = resolve(model, request)[0], closed(Settings(vae_tiling=True))
    composed = atlas.find(model, exact, settings)
    assert isinstance(composed, Trace), composed
    mine, real = estimate(composed, settings), estimate(dry_run(model, exact, settings), settings)
    plain = estimate(atlas.find(model, exact, PLAIN), PLAIN)
    for one, other in zip(mine.stages, real.stages, strict=True):
        assert one.allocated_bytes == pytest.approx(other.allocated_bytes, rel=0.005)
        assert one.reserved_bytes == pytest.approx(other.reserved_bytes, rel=0.005)
    decode = {each.name: each.allocated_bytes for each in mine.stages}["decode"]
    assert decode < {each.name: each.allocated_bytes for each in plain.stages}["decode"]


def test_tiles_at_another_size_are_not_made_up():
    name, width, height, _ = next(each for each in tiled_points() if each[0] == "sdxl-base")
    model = load(name)
    settings = closed(Settings(vae_tiling=True))
    held = resolve(model, Request(model=name, width=width, height=height))[0]
    assert isinstance(atlas.find(model, held, settings), Trace)
    other = resolve(model, Request(model=name, width=width + 64, height=height - 64))[0]
    assert atlas.find(model, other, settings) == Gap("vae_tiling")


def test_tiles_of_another_making_are_refused(tmp_path, monkeypatch):
    name, width, height, frames = next(each for each in tiled_points() if each[0] == "sdxl-base")
    size = f"{width}x{height}x{frames}"
    (tmp_path / f"{name}.xz").write_bytes((read.FOLDER / f"{name}.xz").read_bytes())
    book = {**json.loads(read.tiles_in(name)[size]), "entry": "another"}
    text = json.dumps([size]) + "\n" + json.dumps(book)
    (tmp_path / read.TILES).mkdir()
    (tmp_path / read.TILES / f"{name}.xz").write_bytes(lzma.compress(text.encode()))
    monkeypatch.setattr(read, "FOLDER", tmp_path)
    read.book_of.cache_clear()
    read.tiles_in.cache_clear()
    read.tiles_of.cache_clear()
    try:
        with pytest.raises(BadFile, match=f"{read.TILES}/{name}.xz"):
            read.tiles_of(name, size)
    finally:
        read.book_of.cache_clear()
        read.tiles_in.cache_clear()
        read.tiles_of.cache_clear()


class Tracker:
    """Bytes alive, counted as plainly as can be: no allocator, no placement, every repetition played."""

    def __init__(self, trace):
        self.trace, self.alive, self.now, self.most = trace, {}, 0, 0

    def run(self):
        born = 0
        for segment in self.trace.timeline:
            stride = sum(e[0] == Op.BIRTH for e in segment.events)
            stride += sum(len(b.outputs) for b in segment.bindings)
            for turn in range(segment.repeat):
                self.play(segment.events, segment.bindings, self.alive, turn * stride)
            born += stride * segment.repeat
        return self.most

    def play(self, events, bindings, alive, shift):
        for op, a, b, _ in events:
            if op == Op.BIRTH:
                alive[a + shift] = b
                self.now += b
            elif op == Op.DEATH:
                self.now -= alive.pop(a + shift)
            elif op == Op.WORKSPACE:
                self.most = max(self.most, self.now + b)
            elif op == Op.CALL:
                self.call(a, bindings[b], alive, shift)
            self.most = max(self.most, self.now)

    def call(self, number, binding, alive, shift):
        stream = self.trace.streams[number]
        inner = {
            i: alive[o + shift]
            for i, o in enumerate(binding.inputs)
            if o >= 0 and o + shift in alive
        }
        given = set(inner)
        self.play(stream.events, stream.bindings, inner, 0)
        for gone in given - set(inner):
            alive.pop(binding.inputs[gone] + shift)
        for mine, outer in zip(stream.outputs, binding.outputs, strict=True):
            alive[outer + shift] = inner.pop(mine)


def test_twenty_points_against_a_plain_count_of_what_is_alive():
    """Rounding to 512 bytes and cuBLAS's workspace are all that the replay may add."""
    for _, _, settings, trace in points(20, 77):
        plain = Tracker(trace).run()
        rows = [s for s in estimate(trace, settings).stages if s.name != "load"]
        most = max(s.allocated_bytes - s.weights_bytes for s in rows)
        weights = sum(c.weights_bytes for c in trace.components)
        tensors = sum(len(m.tensors) for c in trace.components for m in c.modules)
        births = sum(e[0] == Op.BIRTH for s in trace.streams for e in s.events) + 2000
        assert plain - 2 * weights * (len(trace.recasts) > 0) <= most
        assert most <= plain + 512 * (tensors + births) + 33 * 2**20 + weights * bool(trace.recasts)


GIB = 2**30


@pytest.mark.parametrize(
    ("model", "request_", "offload", "measured_gib", "within"),
    [
        ("flux.1-dev", {"width": 1024, "height": 1024}, "none", 33.851, 0.005),
        ("flux.1-dev", {"width": 1024, "height": 1024}, "model", 22.64, 0.005),
        ("flux.1-dev", {"width": 1024, "height": 1024}, "sequential", 2.41, 0.02),
        ("hunyuanvideo", {"width": 768, "height": 512, "num_frames": 121}, "none", 60.10, 0.005),
        ("hunyuanvideo", {"width": 768, "height": 512, "num_frames": 121}, "model", 28.87, 0.005),
        ("ltx-video-2b-0.9.0", {"width": 768, "height": 512, "num_frames": 121}, "none", 17.75, 0.005),
        ("sdxl-base", {"width": 1024, "height": 1024}, "none", 10.47, 0.01),
        ("sd3.5-large", {"width": 1024, "height": 1024}, "none", 28.53, 0.01),
    ],
)  # fmt: skip
def test_published_peaks_from_the_atlas(model, request_, offload, measured_gib, within):
    entry = load(model)
    dtype = {"*": "float16"} if model == "sdxl-base" else {}
    assert not dtype or entry.components["unet"].recommended_dtype == "float16"
    exact = resolve(entry, Request(model=model, **request_))[0]
    trace = atlas.find(entry, exact, PLAIN)
    assert isinstance(trace, Trace), trace
    found = estimate(trace, closed(Settings(offload=offload)))
    assert found.allocated_bytes / GIB == pytest.approx(measured_gib, rel=within)


# --- what lies outside


@pytest.mark.parametrize(
    ("fields", "settings", "field"),
    [
        ({"width": 6000, "height": 6000}, {}, "size"),
        ({"batch": 64}, {}, "batch"),
        ({}, {"attention": "math"}, "attention"),
        ({}, {"dtype": {"*": "float32"}}, "dtype"),
        ({}, {"prompt_embeds": True}, "prompt_embeds"),
        ({}, {"vae_tiling": True, "vae_tile": 333}, "vae_tiling"),
        ({"loras": [{"rank": 16}]}, {}, "loras"),
    ],
)
def test_what_lies_outside_is_named_and_not_guessed(fields, settings, field):
    model = load("flux.1-dev")
    exact = resolve(model, Request(model=model.id, **fields))[0]
    found = atlas.find(model, exact, closed(Settings(**settings)))
    assert found == Gap(field)


def test_without_torch_a_gap_names_the_extra(monkeypatch):
    monkeypatch.setattr(source, "installed", dict)
    model = load("flux.1-dev")
    exact = resolve(model, Request(model=model.id, batch=64))[0]
    with pytest.raises(MissingExtra) as caught:
        source.traced(model, exact, PLAIN)
    assert "batch" in str(caught.value)
    assert "cardfit[trace]" in str(caught.value)


def test_other_installed_versions_are_traced_with_what_is_installed(monkeypatch):
    real = source.installed()
    monkeypatch.setattr(source, "installed", lambda: real | {"diffusers": "0.99.0"})
    asked = []
    monkeypatch.setattr(source.cache, "cached", lambda *a, **k: asked.append(a) or ("traced", ()))
    model = load("flux.1-dev")
    exact = resolve(model, Request(model=model.id))[0]
    assert source.traced(model, exact, PLAIN) == ("traced", ())
    assert asked


def test_torch_stays_unloaded_when_the_atlas_answers(tmp_path):
    program = (
        "import sys; from cardfit.cli.main import main\n"
        "sys.argv = ['cardfit', 'plan', 'flux.1-dev', '--card', 'rtx-4090', '--json']\n"
        "try: main()\n"
        "except SystemExit as done: assert not done.code, done.code\n"
        "assert not {'torch', 'diffusers', 'transformers', 'numpy'} & set(sys.modules)"
    )
    environment = {**os.environ, "CARDFIT_CACHE": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert {stage["basis"] for stage in answer["stages"]} <= {"atlas", "rule"}
    assert answer["versions"]["diffusers"] == version("diffusers")


# --- damaged files


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data[:200] + bytes(8) + data[208:],
        lambda data: lzma.compress(b"[1, 2"),
        lambda data: lzma.compress(b'{"layout": 1}'),
        lambda data: lzma.compress(b'{"layout": 999}' + b" " * 100),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it_and_the_way_out(tmp_path, monkeypatch, damage):
    path = tmp_path / "flux.1-dev.xz"
    path.write_bytes(damage((read.FOLDER / "flux.1-dev.xz").read_bytes()))
    monkeypatch.setattr(read, "FOLDER", tmp_path)
    read.book_of.cache_clear()
    model = load("flux.1-dev")
    exact = resolve(model, Request(model=model.id))[0]
    try:
        with pytest.raises(BadFile) as caught:
            atlas.find(model, exact, PLAIN)
    finally:
        read.book_of.cache_clear()
    assert "flux.1-dev.xz" in str(caught.value)
    assert "make atlas" in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "held"),
    [({"*": "bfloat16"}, True), ({"vae": "bfloat16"}, True), ({"vae": "float32"}, False)],
)
def test_the_recommended_dtypes_said_aloud_are_held_as_well(dtype, held):
    model = load("flux.1-dev")
    exact = resolve(model, Request(model=model.id))[0]
    settings = PLAIN.model_copy(update={"dtype": dtype})
    found = atlas.find(model, exact, settings)
    assert isinstance(found, Trace) is held
    if held:
        assert found.settings == settings
        assert found.timeline == atlas.find(model, exact, PLAIN).timeline
    else:
        assert found == Gap("dtype")
