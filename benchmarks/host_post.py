"""How fast a host turns decoded tensors into pictures: the rule behind `cardfit.predict.transfers.POST_PIXELS_PER_S`.

    python benchmarks/host_post.py

In: random tensors as a decoder gives them. Out: a table of pixels per second, of processor time and of the clock, the
best of five. Needs the extra trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from diffusers.image_processor import VaeImageProcessor
from diffusers.video_processor import VideoProcessor

TIMES = 5


def best(work: Callable[[], Any]) -> tuple[float, float]:
    """The least seconds of processor time and of the clock."""
    found = []
    for _ in range(TIMES):
        clock, processor = time.perf_counter(), time.process_time()
        work()
        found.append((time.process_time() - processor, time.perf_counter() - clock))
    return min(each[0] for each in found), min(each[1] for each in found)


def main() -> None:
    """Measure and print."""
    image, video = VaeImageProcessor(vae_scale_factor=8), VideoProcessor(vae_scale_factor=8)
    frames = torch.rand(1, 3, 17, 480, 832) * 2 - 1
    picture = torch.rand(1, 3, 1024, 1024) * 2 - 1

    def to_bytes() -> list[Any]:
        arrays = video.postprocess_video(frames, output_type="np")[0]
        return [(each * 255).astype("uint8") for each in arrays]

    cases: dict[str, tuple[int, Callable[[], Any]]] = {
        "image, fp32, to PIL": (picture[0, 0].numel(), lambda: image.postprocess(picture)),
        "image, bf16, to PIL": (
            picture[0, 0].numel(),
            lambda: image.postprocess(picture.to(torch.bfloat16)),
        ),
        "video, fp32, to PIL": (frames[0, 0].numel(), lambda: video.postprocess_video(frames)),
        "video, fp32, to bytes": (frames[0, 0].numel(), to_bytes),
    }
    for name, (pixels, work) in cases.items():
        processor, clock = best(work)
        print(f"{name:24} {pixels / processor / 1e6:6.1f} {pixels / clock / 1e6:6.1f} Mpixel/s")


if __name__ == "__main__":
    main()
