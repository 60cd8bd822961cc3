"""Read an error text: its lines, the error that ended the run, the numbers in it, the frames of its traceback.

In: bytes of a file or a pipe, or a text. Out: a `Reading`. The formats are those of PyTorch 1.x to 2.13 (CUDA, HIP,
XPU, MPS, CPU), of ComfyUI, of shells and of Windows, as they print them. What a line means for stage and cause is said
in `where` and `cause`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from cardfit.autopsy.result import Backend, Numbers
from cardfit.errors import BadFile, BadRequest, Note
from cardfit.units import MIB, human_bytes, parse_bytes

MAX_BYTES = 5 * MIB
_MOST_BYTES = 256 * MIB  # of a stream; what comes after is not waited for
_MARKS = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, as PowerShell writes it
_MOST_CONTEXT_BYTES = (
    1536 * MIB
)  # what a process holds beside its allocator: context, libraries, graphs
_MAX_LINE = 2000  # signs of one line that are looked at
_NEAR_LINES = 40  # between a frame that pins memory and the error of it
_WINDOW = 10  # lines that one message may be wrapped over

Kind = Literal[
    "device", "driver", "pinned", "host", "dtype", "kernel", "build", "other", "spill", "fallback"
]

_SIZE = r"(\d{1,12}(?:\.\d{1,9})?) ?([KMGT]?i?B|bytes)\b"
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?)")

# The kinds of fatal line, tried in this order on each line.
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "fallback",
        re.compile(r"Ran out of memory when regular VAE (?:en|de)coding, retrying with tiled"),
    ),
    (
        "pinned",
        re.compile(
            r"cudaHostAlloc|cudaHostRegister|cudaMallocHost|resource already mapped"
            r"|cannot pin 'torch|(?:failed|unable|error)[^.]{0,40}\bpin(?:ned)?[ _]?memory"
            r"|pin(?:ned)?[ _]memory[^.]{0,40}(?:failed|error)",
            re.IGNORECASE,
        ),
    ),
    (
        "device",
        re.compile(
            r"(?:CUDA|HIP|XPU|MPS backend) out of memory|\bOutOfMemoryError\b(?!.*\bRay\b)"
            r"|Allocation on device|CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED|out of memory on your GPU"
            r"|(?:CUDA_ERROR|hipError)_?OutOfMemory|CUDA_ERROR_OUT_OF_MEMORY|Got an OOM, unloading"
            r"|ErrorOutOfDeviceMemory"
        ),
    ),
    (
        "driver",
        re.compile(r"(?:CUDA|HIP) error: out of memory|(?:CUDA|HIP) driver error: out of memory"),
    ),
    (
        "host",
        re.compile(
            r"DefaultCPUAllocator|alloc_cpu\.cpp|\bMemoryError\b|std::bad_alloc|ArrayMemoryError"
            r"|Cannot allocate memory|\[Errno 12\]|os error 1455|WinError 1455|paging file is too small"
            r"|(?:^|[\s:\]])Killed(?:\s*$|\s+(?:\"|')?(?:\S*/)?(?:python|accelerate|torchrun|bash|sh|/))"
            r"|exit(?:ed)?(?: with)?\s*(?:code|status)\s*[:=]?\s*\(?(?:137|-9)\b|\bSIGKILL\b"
            r"|\bOOMKilled\b|oom-kill|Out of memory: Killed process|Unable to allocate .* for an array"
            r"|unable to mmap \d+ bytes|shared memory \(shm\)"
        ),
    ),
    (
        "dtype",
        re.compile(
            r"expected scalar type \w+ but found|must have the same dtype"
            r"|Input type .{0,80} should be the same|not implemented for '(?:Half|BFloat16|Float8\w+)'"
            r"|expected m1 and m2 to have the same dtype|Promotion for Float8 Types"
            r"|Unsupported dtype|Got unsupported ScalarType|does not support bfloat16|bf16 .*not supported"
            r"|query, key, and value to have the same dtype"
        ),
    ),
    (
        "kernel",
        re.compile(
            r"no kernel image is available|FlashAttention only supports|is not compatible with the current"
            r"|No available kernel|no operator found for .*attention|requires device with capability"
        ),
    ),
    (
        "build",
        re.compile(
            r"Torch not compiled with CUDA|Found no NVIDIA driver|NVIDIA driver on your system is too old"
            r"|CUDA unknown error|No CUDA GPUs are available|libcuda\.so"
        ),
    ),
)
_WORDS = (
    "memory", "alloc", "kill", "exit", "oom", "type", "kernel", "cuda", "pin", "error", "exception", "mapped",
    "interrupt", "support", "compatible", "operator", "capability", "nvidia", "hip",
)  # fmt: skip
_SPILL = re.compile(
    r"shared (?:GPU )?memory|sysmem fallback|system memory fallback|shared video memory",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(
    r"^(?:\[rank\d+\]:\s*|\*+\s*|\s*E\s+)?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt))(?::|$)"
)
_INVALID = re.compile(r"(?:CUDA|HIP) error: invalid argument")
_PIN_CODE = re.compile(
    r"pin_memory|cudaHostRegister|\bpin(?:ned|_to_memory|_tensor)\b", re.IGNORECASE
)

_FRAME = re.compile(r'File "([^"]{1,500})", line (\d{1,7})(?:, in (\S+))?')
_CELL = re.compile(r"^(?:File )?(\S{1,500}\.py)(?::(\d{1,7}))?,? in ([\w.<>]+)\(")
_ARROW = re.compile(r"^-+> ?(\d+) (.*)$")
_BAR = re.compile(r"\d{1,3}%\|[^|]{0,200}\|\s{0,9}(\d{1,7})/(\d{1,7})")
_RATE = re.compile(r"(\d{1,7}(?:\.\d{1,4})?)\s?s/it")

_FIELDS: dict[str, tuple[re.Pattern[str], ...]] = {
    "tried_bytes": (
        re.compile(rf"[Tt]ried to allocate {_SIZE}"),
        re.compile(r"you tried to allocate (\d{1,18}) (bytes)"),
        re.compile(rf"Requested\s*: {_SIZE}"),
        re.compile(rf"Unable to allocate {_SIZE}"),
        re.compile(r"unable to mmap (\d{1,18}) (bytes)"),
    ),
    "capacity_bytes": (
        re.compile(rf"has a total capaci?ty of {_SIZE}"),
        re.compile(rf"{_SIZE} total capacity"),
        re.compile(rf"Device limit\s*: {_SIZE}"),
        re.compile(rf"max allowed: {_SIZE}"),
    ),
    "free_bytes": (
        re.compile(rf"of which {_SIZE} is free"),
        re.compile(rf"already allocated; {_SIZE} free"),
        re.compile(rf"Free \(according to CUDA\): {_SIZE}"),
    ),
    "in_use_bytes": (
        re.compile(rf"this process has {_SIZE} memory in use"),
    ),
    "allocated_bytes": (
        re.compile(rf"Of the allocated memory {_SIZE} is allocated by PyTorch"),
        re.compile(rf"{_SIZE} already allocated"),
        re.compile(rf"Currently allocated\s*: {_SIZE}"),
        re.compile(rf"MPS allocated: {_SIZE}"),
    ),
    "reserved_bytes": (
        re.compile(rf"{_SIZE} reserved in total by PyTorch"),
        re.compile(rf"free; {_SIZE} cached"),
    ),
    "reserved_unallocated_bytes": (
        re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated"),
    ),
    "allowed_bytes": (re.compile(rf"{_SIZE} allowed;"), re.compile(rf"max allowed: {_SIZE}")),
}  # fmt: skip
_OTHERS = re.compile(rf"Process \d+ has {_SIZE} memory in use")
_MPS_OTHERS = re.compile(rf"other allocations: {_SIZE}")
_DEVICE = re.compile(r"\bGPU (\d{1,3})\b|on device (\d{1,3})\b|\bcuda:(\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback; ``at`` is the index of its line."""

    path: str
    function: str
    code: str
    at: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One state of a progress bar; ``seconds_each`` is None where the bar shows none."""

    label: str
    done: int
    total: int
    seconds_each: float | None
    at: int


@dataclass(frozen=True, slots=True)
class Event:
    """A line that says how a run ended."""

    kind: Kind
    at: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text says, word by word; ``frames`` are of the traceback that ends in the error, outermost first."""

    lines: tuple[str, ...]
    error: Event | None
    events: tuple[Event, ...]
    numbers: Numbers
    frames: tuple[Frame, ...]
    bars: tuple[Bar, ...]
    spill_at: int | None
    notes: tuple[Note, ...] = ()

    def line(self, at: int) -> str:
        """The line at an index, short enough to show."""
        text = self.lines[at].strip()
        return text if len(text) <= 160 else text[:157] + "..."


def text_of_file(path: str | Path) -> tuple[str, tuple[Note, ...]]:
    """The text of the file at ``path``; only the end of one over 5 MiB, with a note.

    Raises BadFile for a file that cannot be read or is no text.
    """
    try:
        with Path(path).open("rb") as stream:
            return text_of(stream, str(path))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadFile("autopsy-not-read", name=str(path), why=why) from error


def text_of(stream: BinaryIO, name: str) -> tuple[str, tuple[Note, ...]]:
    """The text in ``stream``: UTF-8, UTF-16 with its mark, else byte by byte; only the end of a long one.

    Raises BadFile for what is no text, naming ``name``.
    """
    content, size = stream.read(2), 0
    mark = content if content in _MARKS else b""
    size = len(content)
    while size < _MOST_BYTES and (part := stream.read(MIB)):
        size += len(part)
        content += part
        if len(content) > 2 * MAX_BYTES:
            content = content[-MAX_BYTES:]
    if not mark and b"\x00" in content:
        raise BadFile("autopsy-binary", name=name)
    notes: tuple[Note, ...] = ()
    if size > MAX_BYTES:
        args: dict[str, object] = {
            "name": name,
            "size": human_bytes(size),
            "kept": human_bytes(MAX_BYTES),
        }
        cut = MAX_BYTES - (size % 2 if mark else 0)
        content, notes = mark + content[-cut:], (Note("autopsy-tail", args),)
    if mark:
        return content.decode("utf-16", "replace"), notes
    return content.decode("utf-8-sig", "replace"), notes


def read(text: str, notes: Sequence[Note] = ()) -> Reading:
    """Read ``text``. Raises BadRequest when it is empty; whatever else stands in it is read as far as it goes."""
    if len(text) > MAX_BYTES:
        args: dict[str, object] = {
            "name": "text",
            "size": human_bytes(len(text)),
            "kept": human_bytes(MAX_BYTES),
        }
        text, notes = text[-MAX_BYTES:], (*notes, Note("autopsy-tail", args))
    lines = tuple(_clean(line) for line in re.split(r"\r\n|[\r\n]", text))
    if not any(line.strip() for line in lines):
        raise BadRequest("autopsy-empty")
    frames = _frames(lines)
    events = _events(lines, frames)
    error = _fatal(events)
    at = None if error is None else error.at
    return Reading(
        lines=lines,
        error=error,
        events=events,
        numbers=_numbers(lines, events, error),
        frames=_last_traceback(lines, frames, at),
        bars=_bars(lines),
        spill_at=next(
            (i for i, line in enumerate(lines) if "mem" in line and _SPILL.search(line)), None
        ),
        notes=tuple(notes),
    )


def _clean(line: str) -> str:
    """The line without what steers a terminal, cut where no message is that long."""
    line = line[: 4 * _MAX_LINE]
    if not line.isprintable():
        line = _ANSI.sub("", line)
    line = line[:_MAX_LINE]
    if line.isprintable():
        return line
    return "".join(sign if sign.isprintable() else " " for sign in line)


def _events(lines: Sequence[str], frames: Sequence[Frame]) -> tuple[Event, ...]:
    pins = [frame.at for frame in frames if _PIN_CODE.search(f"{frame.function} {frame.code}")]
    code = {frame.at + 1 for frame in frames if frame.code} | {frame.at for frame in frames}
    found = []
    for at, line in enumerate(lines):
        if at in code or not _may_tell(line):
            continue
        near = bisect_left(pins, at)
        pinning = near > 0 and at - pins[near - 1] < _NEAR_LINES
        if (kind := _kind(line, pinning)) is not None:
            found.append(Event(kind, at))
    return tuple(found)


def _may_tell(line: str) -> bool:
    """Whether any of the patterns can match: a quick look, since a log has many lines that say nothing."""
    low = line.lower()
    return any(word in low for word in _WORDS)


def _kind(line: str, pinning: bool) -> Kind | None:
    """What a line says of the end of a run, if it says anything."""
    for kind, pattern in _KINDS:
        if pattern.search(line):
            return "pinned" if kind == "driver" and pinning else kind
    if _INVALID.search(line):
        return "pinned" if pinning or _PIN_CODE.search(line) else "other"
    return "other" if _EXCEPTION.search(line) else None


def _fatal(events: Sequence[Event]) -> Event | None:
    """The last event that is a reason; another exception only where there is no reason at all."""
    reasons = [each for each in events if each.kind not in ("other", "fallback")]
    others = [each for each in events if each.kind == "other"]
    fallbacks = [each for each in events if each.kind == "fallback"]
    found = reasons or others or fallbacks
    return found[-1] if found else None


def _numbers(lines: Sequence[str], events: Sequence[Event], error: Event | None) -> Numbers:
    """The numbers of the last message of the error's kind that has any."""
    if error is None or error.kind not in ("device", "driver", "host", "pinned"):
        return Numbers()
    backend: Backend = "cpu" if error.kind in ("host", "pinned") else "cuda"
    for event in reversed([each for each in events if each.kind == error.kind]):
        message = " ".join(_message(lines, event.at))
        sizes = {name: _first(message, patterns) for name, patterns in _FIELDS.items()}
        if any(size is not None for size in sizes.values()):
            return _counted(message, sizes, backend)
    return Numbers(backend=_backend(" ".join(_message(lines, error.at)), backend))


def _message(lines: Sequence[str], at: int) -> list[str]:
    """The line of an error and those that it may be wrapped over."""
    found = [lines[at]]
    for line in lines[at + 1 : at + _WINDOW]:
        if "Traceback (most recent" in line or _FRAME.search(line):
            break
        found.append(line.strip())
    return found


def _counted(message: str, sizes: dict[str, int | None], backend: Backend) -> Numbers:
    others = [_bytes(*match.groups()) for match in _OTHERS.finditer(message)]
    _own(others, sizes)
    others += [_bytes(*match.groups()) for match in _MPS_OTHERS.finditer(message)]
    other_bytes: int | None = sum(others) if others else None
    capacity, free, in_use = (sizes[f"{n}_bytes"] for n in ("capacity", "free", "in_use"))
    if other_bytes is None and None not in (capacity, free, in_use):
        other_bytes = max(0, (capacity or 0) - (free or 0) - (in_use or 0))
    allocated, apart = sizes["allocated_bytes"], sizes["reserved_unallocated_bytes"]
    reserved = sizes.pop("reserved_bytes")
    if reserved is None and allocated is not None and apart is not None:
        reserved = allocated + apart
    if apart is None and reserved is not None and allocated is not None:
        sizes["reserved_unallocated_bytes"] = max(0, reserved - allocated)
    device = next((g for m in _DEVICE.finditer(message) for g in m.groups() if g), None)
    return Numbers(
        backend=_backend(message, backend),
        device=None if device is None else int(device),
        reserved_bytes=reserved,
        other_bytes=other_bytes,
        **sizes,
    )


def _own(others: list[int], sizes: dict[str, int | None]) -> None:
    """Inside a container a process is not told which one it is: the one that holds just what was reserved is it."""
    parts = (sizes["allocated_bytes"], sizes["reserved_unallocated_bytes"])
    if sizes["in_use_bytes"] is not None or None in parts:
        return
    reserved = sum(part or 0 for part in parts)
    near = [size for size in others if 0 <= size - reserved <= _MOST_CONTEXT_BYTES]
    if near:
        sizes["in_use_bytes"] = min(near)
        others.remove(min(near))


def _backend(message: str, otherwise: Backend) -> Backend:
    for word, backend in (("MPS", "mps"), ("HIP", "hip"), ("XPU", "xpu"), ("CUDA", "cuda")):
        if otherwise != "cpu" and word in message:
            return backend  # type: ignore[return-value]
    return otherwise


def _first(message: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    for pattern in patterns:
        if (match := pattern.search(message)) is not None:
            return _bytes(match[1], match[2])
    return None


def _bytes(number: str, unit: str) -> int:
    """PyTorch divides by powers of two whatever it calls the unit."""
    return parse_bytes(f"{number} {'B' if unit == 'bytes' else unit}", memory=True)


def _frames(lines: Sequence[str]) -> tuple[Frame, ...]:
    found = []
    for at, line in enumerate(lines):
        if (match := _FRAME.search(line)) is not None:
            code = lines[at + 1].strip() if at + 1 < len(lines) else ""
            if _FRAME.search(code) or _EXCEPTION.search(code):  # a frame without its source line
                code = ""
            found.append(Frame(match[1], match[3] or "", code, at))
        elif (cell := _CELL.match(line.strip())) is not None:
            arrows = (_ARROW.match(each.strip()) for each in lines[at + 1 : at + 15])
            code = next((arrow[2].strip() for arrow in arrows if arrow is not None), "")
            found.append(Frame(cell[1], cell[3], code, at))
    return tuple(found)


def _last_traceback(
    lines: Sequence[str], frames: Sequence[Frame], error_at: int | None
) -> tuple[Frame, ...]:
    """The frames of the traceback that ends in the error; those of the last one where none does."""
    if not frames:
        return ()
    before = [each for each in frames if error_at is None or each.at < error_at] or list(frames)
    last = before[-1].at
    heads = [at for at in range(last) if "Traceback (most recent" in lines[at]]
    start = heads[-1] if heads else -1
    return tuple(each for each in before if each.at > start)


def _bars(lines: Sequence[str]) -> tuple[Bar, ...]:
    found = []
    for at, line in enumerate(lines):
        if "%|" not in line or (match := _BAR.search(line)) is None:
            continue
        rate = _RATE.search(line)
        each = None if rate is None else float(rate[1])
        label = line[: match.start()].strip(" :")
        found.append(Bar(label, int(match[1]), int(match[2]), each, at))
    return tuple(found)
