"""Host RAM by hand: what is loaded, what waits, what the frames take; and what post-processing itself allocates."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.predict.estimate import HostMoment
from cardfit.predict.host import (
    NP_COPIES,
    PIL_COPIES,
    PROCESS_HIGH_BYTES,
    PROCESS_LIKELY_BYTES,
    PROCESS_LOW_BYTES,
    SHARD_BYTES,
    frames_bytes,
    host_moments,
)
from cardfit.predict.offload import Waiting
from cardfit.predict.placement import pinned_bytes
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Component, Module, Trace

GB = 10**9


def part(name: str, size_bytes: int, dtype: str = "bfloat16") -> Component:
    weight = ("weight", size_bytes, dtype)
    return Component(name, "Fake", dtype, (Module("", "Linear", (weight,), linear=True),))


def trace(*parts: Component, num_frames: int = 1, batch: int = 1) -> Trace:
    request = ExactRequest(
        model="tiny",
        task="text-to-image",
        width=100,
        height=50,
        num_frames=num_frames,
        batch=batch,
        num_inference_steps=2,
        guidance_scale=1.0,
        prompt_tokens=8,
    )
    return Trace(
        request=request,
        settings=Settings(),
        versions={},
        pipeline="Tiny",
        offload_sequence=(),
        components=parts,
        recasts=(),
        stages=(),
        streams=(),
        timeline=(),
        sites=(),
    )


def moments(one: Trace, waiting: Waiting = Waiting(), **published: str) -> dict[str, HostMoment]:
    found = host_moments(one, Settings(), waiting, published)
    assert [each.name for each in found] == ["load", "run", "export"]
    return {each.name: each for each in found}


def test_a_file_whose_dtype_stays_takes_no_memory_of_its_own() -> None:
    load = moments(trace(part("t", 10 * GB)), t="bfloat16")["load"]
    assert load.likely_bytes == PROCESS_LIKELY_BYTES
    assert load.mapped_bytes == 10 * GB


def test_another_dtype_is_a_copy_beside_one_shard_of_the_file() -> None:
    # bf16 made from fp32: 10 GB of its own; the files are 20 GB, in shards of 10
    load = moments(trace(part("t", 10 * GB), part("v", GB)), t="float32", v="bfloat16")["load"]
    assert load.likely_bytes == PROCESS_LIKELY_BYTES + 10 * GB
    assert load.low_bytes == PROCESS_LOW_BYTES + 10 * GB
    assert load.high_bytes == PROCESS_HIGH_BYTES + 10 * GB
    assert load.mapped_bytes == GB + SHARD_BYTES
    assert load.parts == (("process", PROCESS_LIKELY_BYTES), ("copies", 10 * GB))
    # fp32 made from bf16: 4 GB of its own beside 2 GB of files
    load = moments(trace(part("v", 4 * GB, "float32")), v="bfloat16")["load"]
    assert load.likely_bytes == PROCESS_LIKELY_BYTES + 4 * GB
    assert load.mapped_bytes == 2 * GB


def test_weights_that_wait_are_there_while_it_runs_and_at_export() -> None:
    waiting = Waiting(pageable_bytes=3 * GB, pinned_bytes=4 * GB, passing_bytes=GB)
    found = moments(trace(part("t", 7 * GB)), waiting)
    assert found["run"].likely_bytes == PROCESS_LIKELY_BYTES + 8 * GB
    assert found["run"].high_bytes == PROCESS_HIGH_BYTES + 9 * GB
    frames = PIL_COPIES * 100 * 50 * 3 * 4
    assert found["export"].likely_bytes == PROCESS_LIKELY_BYTES + 7 * GB + frames


def test_pages_that_never_came_back_from_the_card_can_be_dropped() -> None:
    waiting = Waiting(pageable_bytes=7 * GB, in_files=True)
    run = moments(trace(part("t", 7 * GB)), waiting, t="bfloat16")["run"]
    assert (run.low_bytes, run.likely_bytes) == (PROCESS_LOW_BYTES, PROCESS_LIKELY_BYTES + 7 * GB)
    assert run.mapped_bytes == 7 * GB
    cast = moments(trace(part("t", 7 * GB)), waiting, t="float32")["run"]
    assert cast.low_bytes == PROCESS_LOW_BYTES + 7 * GB


def test_frames_by_hand() -> None:
    video = trace(num_frames=9, batch=2)
    one = 9 * 100 * 50 * 3 * 4
    assert frames_bytes(video) == 2 * one
    export = moments(video)["export"]
    # arrays and the stack of them: 4 x one; pictures: three copies of one output beside those of the first
    assert export.likely_bytes - PROCESS_LIKELY_BYTES == NP_COPIES * 2 * one
    assert export.low_bytes - PROCESS_LOW_BYTES == 2 * one
    pictures = moments(trace(batch=4))["export"]
    assert pictures.likely_bytes - PROCESS_LIKELY_BYTES == PIL_COPIES * 4 * 100 * 50 * 3 * 4


sizes = st.integers(0, 10**11)


@given(own=sizes, pageable=sizes, pinned=sizes, passing=sizes, files=st.booleans())
def test_parts_sum_and_bounds_are_in_order(
    own: int, pageable: int, pinned: int, passing: int, files: bool
) -> None:
    waiting = Waiting(pageable, pinned, passing, in_files=files)
    for dtype in ("bfloat16", "float32"):
        for moment in moments(trace(part("t", own // 2 * 2)), waiting, t=dtype).values():
            assert sum(size for _, size in moment.parts) == moment.likely_bytes
            assert 0 < moment.low_bytes <= moment.likely_bytes <= moment.high_bytes


@given(st.integers(1, 10**12))
def test_pinned_memory_is_the_next_power_of_two(size: int) -> None:
    found = pinned_bytes(size)
    assert size <= found < 2 * size
    assert found & (found - 1) == 0


def test_torch_rounds_pinned_memory_as_its_header_says() -> None:
    torch = pytest.importorskip("torch")
    folder = Path(torch.__file__).parent / "include"
    header = folder / "ATen/core/CachingHostAllocator.h"
    if not header.exists():
        pytest.skip("torch came without headers")
    assert "return c10::llvm::PowerOf2Ceil(size);" in header.read_text(encoding="utf-8")
    config = (folder / "c10/core/AllocatorConfig.h").read_text(encoding="utf-8")
    assert re.search(r"pinned_max_round_threshold_\{std::numeric_limits<size_t>::max\(\)\}", config)


@pytest.mark.parametrize(("kind", "beside"), [("pil", PIL_COPIES - 1), ("np", NP_COPIES - 1)])
def test_the_copies_that_post_processing_makes(kind: str, beside: int) -> None:
    """numpy tells tracemalloc what it allocates; the fp32 array itself is torch's and is not counted."""
    torch = pytest.importorskip("torch")
    processor: Any = pytest.importorskip("diffusers.video_processor").VideoProcessor()
    video = torch.zeros(1, 3, 9, 128, 256)
    whole = 9 * 128 * 256 * 3 * 4
    tracemalloc.start()
    try:
        processor.postprocess_video(video, output_type=kind)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak == pytest.approx(beside * whole, rel=0.02)


def test_loading_maps_files_and_copies_only_for_another_dtype(tmp_path: Path) -> None:
    """diffusers and transformers hand out views of the mapped file: their storages are the file's."""
    torch = pytest.importorskip("torch")
    diffusers = pytest.importorskip("diffusers")
    model = diffusers.AutoencoderKL(block_out_channels=(8,), norm_num_groups=2, sample_size=8)
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    bytes_of = {}
    for dtype in (torch.bfloat16, torch.float32):
        loaded = diffusers.AutoencoderKL.from_pretrained(tmp_path, torch_dtype=dtype)
        storages = {
            p.untyped_storage().data_ptr(): p.untyped_storage() for p in loaded.parameters()
        }
        bytes_of[dtype] = (len(storages), max(storage.nbytes() for storage in storages.values()))
    file_bytes = (tmp_path / "diffusion_pytorch_model.safetensors").stat().st_size
    tensors = len([*model.parameters()])
    assert bytes_of[torch.bfloat16] == (1, file_bytes) or bytes_of[torch.bfloat16][0] == tensors
    assert bytes_of[torch.float32][0] == tensors
