"""Error texts in the formats that PyTorch, ComfyUI, shells and Windows print, put together from parts."""

from __future__ import annotations

ADVICE = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    "  See documentation for Memory Management "
    " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
SITE = "/opt/venv/lib/python3.11/site-packages/"
COMFY = "/srv/ComfyUI/"


def new(tried, total, free, used, allocated, apart, *, head="torch.OutOfMemoryError: CUDA", gpu=0):
    """The message since torch 2.1; sizes with their unit."""
    return (
        f"{head} out of memory. Tried to allocate {tried}. GPU {gpu} has a total capacity of {total} of which"
        f" {free} is free. Including non-PyTorch memory, this process has {used} memory in use. Of the"
        f" allocated memory {allocated} is allocated by PyTorch, and {apart} is reserved by PyTorch but"
        f" unallocated.{ADVICE}"
    )


def old(tried, total, allocated, free, reserved, gpu=0):
    """The message of torch 1.x and 2.0."""
    return (
        f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} (GPU {gpu}; {total} total"
        f" capacity; {allocated} already allocated; {free} free; {reserved} reserved in total by PyTorch) If"
        " reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
    )


def frame(path, function, code, line=100):
    return f'  File "{path}", line {line}, in {function}\n    {code}'


def traceback(*frames, error):
    return "\n".join(["Traceback (most recent call last):", *frames, error])


USER = frame(
    "/srv/job/run.py", "<module>", "video = pipe(prompt, height=480, width=832).frames[0]", 12
)
TO = frame(SITE + "torch/nn/modules/module.py", "convert", "return t.to(", 1371)


def diffusers(*frames, code, error, pipeline="wan/pipeline_wan.py"):
    """A traceback through a diffusers pipeline whose ``__call__`` stands at ``code``."""
    call = frame(SITE + f"diffusers/pipelines/{pipeline}", "__call__", code, 601)
    return traceback(USER, call, *frames, error=error)
