"""Host RAM of a run: the highest of three moments, each with named parts that sum to it.

``load``: files mapped into memory, and a copy of every component that changes its dtype on the way. ``ingest``: where
footage goes in, its frames and the arrays they become. ``run``: weights
that wait for the card. ``export``: the weights that are back, and the frames with the copies that post-processing
makes. In: a trace, what the placement leaves on the host, the dtypes the weights are published in. Bytes out. Left
out: the prompt's tensors, an encoder's own buffers, and what other programs take.
"""

from __future__ import annotations

from collections.abc import Mapping

from cardfit.predict.estimate import HostMoment
from cardfit.predict.offload import Waiting
from cardfit.predict.weights import module_weights
from cardfit.request import Settings
from cardfit.trace.stream import Component, Trace
from cardfit.units import GIB

# Python, torch, diffusers and transformers take 0.33 GiB once imported (torch 2.13 for CPU, read from /proc); CUDA's
# context and the pages of cuBLAS and cuDNN that are touched come on top. Basis: rule.
PROCESS_LOW_BYTES = 1 * GIB
PROCESS_LIKELY_BYTES = 2 * GIB
PROCESS_HIGH_BYTES = 3 * GIB
# diffusers splits a component's files at 10 GB (save_pretrained's max_shard_size, 0.42.1)
SHARD_BYTES = 10 * 10**9
_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
RGB, FP32_BYTES, PIL_PIXEL_BYTES = 3, 4, 4
# an output that becomes pictures: scaled and rounded copies beside the array (VaeImageProcessor.numpy_to_pil)
PIL_COPIES = 3
# the list of arrays beside the one they are stacked into (VideoProcessor.postprocess_video, output_type "np")
NP_COPIES = 2


def frames_bytes(trace: Trace) -> int:
    """Decoded frames as fp32 RGB: batch x frames x height x width x 3 x 4 bytes."""
    request = trace.request
    width, height = request.size_after_post
    pixels = request.frames_after_post * height * width
    return request.batch * pixels * RGB * FP32_BYTES


def _frames(trace: Trace) -> tuple[int, int, int]:
    """The frames at export, low / likely / high: one fp32 array, the copies that are made of it, and uint8 beside.

    A video is taken output by output, pictures of a batch together.
    """
    whole = frames_bytes(trace)
    one = whole // trace.request.batch if trace.request.num_frames > 1 else whole
    done = (whole - one) // RGB  # pictures of the outputs that are done: PIL keeps 4 bytes a pixel
    likely = max(NP_COPIES * whole, PIL_COPIES * one + done)
    return whole, likely, likely + whole // RGB + one // 2


def _loaded(component: Component, settings: Settings, published: str | None) -> tuple[int, int]:
    """Bytes of a component's own memory after loading, and bytes of its files that are mapped.

    safetensors maps a file and hands out views of it: a tensor whose dtype stays takes no memory of its own (read from
    /proc with diffusers 0.42.1 and transformers 5.24, for models of both). A quantized component is built anew.
    """
    scheme = settings.quantization.get(component.name, "none")
    if scheme != "none":
        weights = module_weights(component, scheme)
        return sum(sum(m.tensors) for m in weights), 0
    size = component.weights_bytes
    if published is None or component.dtype == published:
        return 0, size
    return size, 0


def _file_bytes(component: Component, published: str | None) -> int:
    """Bytes of a component's files, in the dtype they are published in."""
    item = _ITEM_BYTES.get(component.dtype, 2)
    return component.weights_bytes // item * _ITEM_BYTES.get(published or component.dtype, item)


def host_moments(
    trace: Trace, settings: Settings, waiting: Waiting, published: Mapping[str, str] | None = None
) -> tuple[HostMoment, ...]:
    """The moments ``load``, ``run`` and ``export``.

    ``published`` is component -> dtype of its files; without it weights are taken to be published as they are loaded.
    """
    own = mapped = shard = 0
    for component in trace.components:
        dtype = (published or {}).get(component.name)
        copied, in_file = _loaded(component, settings, dtype)
        own, mapped = own + copied, mapped + in_file
        if copied:
            shard = max(shard, min(SHARD_BYTES, _file_bytes(component, dtype)))
    # pages of the files can be dropped and read again, as long as nothing came back from the card
    droppable = max(0, waiting.pageable_bytes - own) if waiting.in_files else 0
    weights = {"pageable": waiting.pageable_bytes, "pinned": waiting.pinned_bytes}
    process = (PROCESS_LOW_BYTES, PROCESS_LIKELY_BYTES, PROCESS_HIGH_BYTES)
    frames = _frames(trace)
    passing = waiting.passing_bytes
    footage = footage_bytes(trace)
    ingest = (_ingested(trace, process, weights, footage),) if footage else ()
    return (
        _moment("load", process, {"copies": own}, (0, 0, 0), mapped=mapped + shard),
        *ingest,
        _moment(
            "run",
            process,
            weights | {"passing": passing, "footage": footage},
            (-droppable, 0, passing),  # two groups may be under way
            mapped=droppable,
        ),
        _moment(
            "export",
            process,
            weights | {"frames": frames[1], "footage": footage},
            (frames[0] - frames[1] - droppable, 0, frames[2] - frames[1]),
            mapped=droppable,
        ),
    )


def footage_bytes(trace: Trace) -> int:
    """What a video-to-video run is handed: its frames as pictures, which the caller holds to the end."""
    request = trace.request
    if request.task != "video-to-video":
        return 0
    return request.num_frames * request.height * request.width * PIL_PIXEL_BYTES


def _ingested(
    trace: Trace, process: tuple[int, int, int], weights: Mapping[str, int], footage: int
) -> HostMoment:
    """The footage while it becomes one fp32 array: pictures, arrays, and the array they are stacked into."""
    array = footage // PIL_PIXEL_BYTES * RGB * FP32_BYTES
    parts = {**weights, "footage": footage, "arrays": NP_COPIES * array}
    return _moment("ingest", process, parts, (-array, 0, array), mapped=0)


def _moment(
    name: str,
    process: tuple[int, int, int],
    parts: Mapping[str, int],
    spread: tuple[int, int, int],
    *,
    mapped: int,
) -> HostMoment:
    """The parts that are there beside the process; ``spread`` is what low and high differ by from their sum."""
    total = sum(parts.values())
    named = {"process": process[1], **parts}
    return HostMoment(
        name=name,
        low_bytes=process[0] + total + spread[0],
        likely_bytes=process[1] + total,
        high_bytes=process[2] + total + spread[2],
        mapped_bytes=mapped,
        parts=tuple((part, size) for part, size in named.items() if size),
    )
