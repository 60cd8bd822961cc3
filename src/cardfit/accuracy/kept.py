"""Traces that older releases of diffusers made, kept as data for the rows of their time.

In: a folder that `benchmarks/versions.py` wrote, by default the one in the package: an index and compressed traces.
Out: the trace of a row's configuration with the diffusers of its time, and which models were found to take the same
memory then as today. What shapes no trace is no part of the key (placement, quantization), nor are the number of steps,
the prompt's length and the guidance beyond whether it runs: rows that differ only there share a trace.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cardfit.accuracy.older import number, series_of_version
from cardfit.accuracy.rebuild import Rebuilt
from cardfit.errors import BadFile
from cardfit.trace import coding
from cardfit.trace.cache import shaping
from cardfit.trace.stream import Trace
from cardfit.units import MIB

SCHEMA = "cardfit.versions/2"
SAME_PCT = 0.3  # figures that lie no farther apart count as the same
INDEX = "index.json"
MAX_FILE_BYTES = 8 * MIB
MAX_CONTENT_BYTES = 256 * MIB  # once unpacked
_REQUEST = ("task", "width", "height", "num_frames", "batch")
_DECODE = _REQUEST[1:]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Shape(_Frozen):
    """What shapes a trace beside the model: the request and settings, what is at its default left out.

    ``settings`` hold the dtype of every component that runs. A decode alone has neither task nor guidance.
    """

    model: str
    scope: Literal["run", "decode"]
    request: dict[str, Any]
    settings: dict[str, Any]

    @classmethod
    def of(cls, rebuilt: Rebuilt) -> Shape:
        """The shape of a rebuilt row."""
        model, request, settings = rebuilt.model, rebuilt.request, rebuilt.settings
        alone = rebuilt.scope == "decode"
        asked: dict[str, Any] = request.model_dump(
            mode="json", include=set(_DECODE if alone else _REQUEST)
        )
        if not alone:
            asked["guided"] = request.guidance_scale > 1
            if request.loras:
                asked["loras"] = [
                    each.model_dump(mode="json", include={"rank", "fused", "dtype"})
                    for each in request.loras
                ]
        given = settings.dtype
        dtypes = {
            name: given.get(name) or given.get("*") or part.recommended_dtype
            for name, part in model.components.items()
            if part.counted and (not alone or name == model.vae.component)
        }
        shaped = {name: value for name, value in shaping(settings).items() if value}
        if shaped.get("attention") == "sdpa":
            del shaped["attention"]
        return cls(
            model=model.id,
            scope="decode" if alone else "run",
            request=asked,
            settings={**shaped, "dtype": dtypes},
        )

    @property
    def key(self) -> str:
        """One text for equal shapes."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True)


class KeptTrace(_Frozen):
    """One trace: which release made it, of what, and the file it lies in."""

    series: str
    shape: Shape
    file: Annotated[str, Field(pattern=r"^[\d.]+-[0-9a-f]{16}\.xz$")]


class Checked(_Frozen):
    """How far today's figures of a model lie from those of an older release, in percent of the older.

    The farthest of ``configurations`` configurations, with its sign.
    """

    configurations: int
    allocated_pct: float
    reserved_pct: float

    @property
    def same(self) -> bool:
        """Whether both figures are within 0.3 %."""
        return max(abs(self.allocated_pct), abs(self.reserved_pct)) <= SAME_PCT


class Release(_Frozen):
    """One release series: the versions that were traced, and model -> what came of the comparison."""

    versions: dict[str, str]
    models: dict[str, Checked]


class Index(_Frozen):
    """What a folder of kept traces holds; ``layout`` is that of `cardfit.trace.coding`."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    layout: int = coding.LAYOUT
    series: dict[str, Release] = {}
    traces: tuple[KeptTrace, ...] = ()


class Kept:
    """The traces and comparisons of one folder."""

    def __init__(self, index: Index | None = None, folder: Traversable | None = None) -> None:
        self.index = index or Index()
        self._folder = folder
        self._last: tuple[str, Any] = ("", None)  # rows of one configuration come together
        self._files = {(each.series, each.shape.key): each.file for each in self.index.traces}

    def checked(self, series: str | None, model: str) -> Checked | None:
        """How today's figures of ``model`` compare with those of ``series``; None where nobody compared."""
        release = self.index.series.get(series) if series is not None else None
        return release.models.get(model) if release is not None else None

    def name(self, series: str | None, rebuilt: Rebuilt) -> str | None:
        """The file with the trace of the row's configuration in ``series``; None where none was kept."""
        return self._files.get((series, Shape.of(rebuilt).key)) if series is not None else None

    def trace(self, series: str | None, rebuilt: Rebuilt) -> Trace | None:
        """The trace of the row's configuration as ``series`` made it; None where none was kept.

        Raises BadFile where the file is missing or damaged.
        """
        name = self.name(series, rebuilt)
        if name is None or self._folder is None:
            return None
        path = self._folder / name
        if self._last[0] != name:
            self._last = (name, _content(path))
        try:
            return coding.decode(self._last[1], rebuilt.request, rebuilt.settings)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Traversable, error: Exception) -> BadFile:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return BadFile("accuracy-bad-versions", file=str(path), found=reason)


def _content(path: Traversable) -> Any:
    try:
        packed = path.read_bytes()
        if len(packed) > MAX_FILE_BYTES:
            raise ValueError(f"over {MAX_FILE_BYTES} bytes")
        unpacked = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        text = unpacked.decompress(packed, MAX_CONTENT_BYTES)
        if not unpacked.eof:
            raise ValueError(f"over {MAX_CONTENT_BYTES} bytes, or cut short")
        return json.loads(text)
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise _damaged(path, error) from error


def load(folder: Traversable) -> Kept:
    """What ``folder`` keeps, nothing where it has no index.

    Raises BadFile for a file that is no index, and for traces of another layout of `cardfit.trace.coding`.
    """
    path = folder / INDEX
    if not path.is_file():
        return Kept()
    try:
        index = Index.model_validate_json(path.read_bytes())
        if index.schema_ != SCHEMA:
            raise ValueError(index.schema_)
    except (OSError, ValidationError, ValueError) as error:
        raise _damaged(path, error) from error
    if index.layout != coding.LAYOUT:
        made = " ".join(release.versions["diffusers"] for release in index.series.values())
        raise BadFile(
            "accuracy-old-layout",
            file=str(path),
            found=index.layout,
            needed=coding.LAYOUT,
            versions=made,
        )
    return Kept(index, folder)


@cache
def kept() -> Kept:
    """What the package keeps. Raises BadFile as `load` does."""
    return load(files("cardfit.accuracy") / "data" / "versions")


def store(folder: Path, trace: Trace) -> str:
    """Write ``trace`` into ``folder`` and return the name of its file, which equal traces share."""
    content = json.dumps(coding.encode(trace), sort_keys=True, separators=(",", ":")).encode()
    series = series_of_version(trace.versions["diffusers"])
    name = f"{series}-{hashlib.sha256(content).hexdigest()[:16]}.xz"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / name).is_file():
        (folder / name).write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
    return name


def save(folder: Path, index: Index) -> None:
    """Write ``index``, sorted, one line a trace, and remove the files in ``folder`` that it does not name."""
    folder.mkdir(parents=True, exist_ok=True)
    series = {
        name: {
            "versions": release.versions,
            "models": {m: c.model_dump(mode="json") for m, c in sorted(release.models.items())},
        }
        for name, release in sorted(index.series.items(), key=lambda each: number(each[0]))
    }
    traces = sorted(index.traces, key=lambda each: (number(each.series), each.shape.key))
    lines = [json.dumps(each.model_dump(mode="json"), sort_keys=True) for each in traces]
    head = json.dumps({"schema": SCHEMA, "layout": index.layout, "series": series}, indent=1)
    body = ",\n".join(f"  {line}" for line in lines)
    text = f'{head[:-2]},\n "traces": [\n{body}\n ]\n}}\n' if lines else f"{head}\n"
    (folder / INDEX).write_text(text, encoding="utf-8")
    named = {each.file for each in index.traces}
    for path in folder.glob("*.xz"):
        if path.name not in named:
            path.unlink()
