"""How a script loads and places a pipeline: its settings and components, with where each comes from.

In: a `Run` from the ledger and the library's entry. Out: a `Placed`: what `Settings` can say of it, component by
component what the script said, and what `Settings` cannot say. A knob that the script leaves alone stays open here;
`cardfit.script.planning` closes it, since a script that does not tile does not tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cardfit.errors import BadRequest
from cardfit.library.models import Model
from cardfit.messages import say
from cardfit.messages.said import Said
from cardfit.request import DTYPES, Dtype, Offload, Settings
from cardfit.request.read import validate_settings
from cardfit.script.books import Part, Pipe, Run, Told, dtype_named
from cardfit.script.known import Known
from cardfit.script.result import Grouped, Loaded, Missing, Origin
from cardfit.script.things import Answers
from cardfit.script.values import Open, Ref, Thing

_DENOISERS = ("transformer", "unet", "prior")
_GROUPS: Mapping[str, Offload] = {"leaf_level": "group-leaf", "block_level": "group-block"}
_PLAIN_KNOBS = (
    "vae_tiling",
    "vae_slicing",
    "attention",
    "fuse_qkv",
    "compile",
    "forward_chunking",
    "alloc_conf",
)
_TILES = ("tile_sample_min_height", "tile_sample_min_width")
_STRIDES = ("tile_sample_stride_height", "tile_sample_stride_width")
_FACTORS = ("tile_overlap_factor", "tile_overlap_factor_height", "tile_overlap_factor_width")
DEFAULT_DTYPE: Dtype = "float32"
"""What diffusers' ``from_pretrained`` loads in where nothing is said."""


@dataclass(slots=True)
class Placed:
    """What is said of loading and placement."""

    settings: Settings = field(default_factory=Settings)
    components: tuple[Loaded, ...] = ()
    device: str | None = None
    autocast: Dtype | None = None
    scheduler: str | None = None
    origins: list[Origin] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    left: list[Said] = field(default_factory=list)
    notes: list[Said] = field(default_factory=list)

    def came(self, name: str, told: Told) -> None:
        """Note where a setting comes from."""
        self.origins.append(Origin(field=name, value=told.value, lines=tuple(sorted(told.lines))))


def placed(run: Run, entry: Model | None, known: Known, answers: Answers) -> Placed:
    """How the pipeline of ``run`` stands when it is called."""
    pipe, how = run.pipe, Placed()
    fields: dict[str, Any] = {}
    for name in _PLAIN_KNOBS:
        _knob(how, fields, name, pipe.knobs.get(name), answers)
    _tile(how, fields, pipe)
    _around(how, fields, run, known)
    dtypes = _dtypes(how, pipe, entry, answers, known)
    if dtypes:
        fields["dtype"] = dtypes
    schemes = {
        n: part.scheme for n, part in pipe.parts.items() if part.scheme and _counts(entry, n)
    }
    for name, told in schemes.items():
        how.came(f"quantization.{name}", told)
    fields["quantization"] = {name: told.value for name, told in schemes.items()}
    _offload(how, fields, pipe, entry)
    if all_encoders_out(pipe, entry):
        fields["prompt_embeds"] = True
    how.settings = _checked(how, fields, run.event.line)
    how.components = tuple(_loaded(name, part) for name, part in pipe.parts.items() if _told(part))
    _rest(how, pipe, entry, known)
    return how


def _knob(
    how: Placed, fields: dict[str, Any], name: str, told: Told | None, answers: Answers
) -> None:
    """A knob as it was turned; one with an open value is asked for."""
    if told is None:
        return
    value = told.value
    if isinstance(value, Open):
        answer = answers.take_field(name)
        if answer is None:
            for each in value.questions:
                why = say(each.code, {"what": each.what, "name": each.name or name})
                how.missing.append(Missing(line=each.line, input=each.name or name, why=why))
            return
        value = answer
    if value is not None:
        fields[name] = value
        how.came(name, Told(value, told.lines))


def _tile(how: Placed, fields: dict[str, Any], pipe: Pipe) -> None:
    """The tile's side and overlap in pixels, from sides and strides or shares."""
    told = {
        name: pipe.knobs[name] for name in (*_TILES, *_STRIDES, *_FACTORS) if name in pipe.knobs
    }
    numbers = {
        name: each.value
        for name, each in told.items()
        if isinstance(each.value, (int, float)) and not isinstance(each.value, bool)
    }
    sides = [numbers[name] for name in _TILES if name in numbers]
    if not sides or not fields.get("vae_tiling"):
        return
    lines = tuple(sorted({line for each in told.values() for line in each.lines}))
    if len(set(sides)) > 1:
        how.left.append(
            Said.of("script-tile-sides", line=lines[0], sides=" x ".join(map(str, sides)))
        )
    fields["vae_tile"] = int(min(sides))
    how.came("vae_tile", Told(int(min(sides)), lines))
    strides = [numbers[name] for name in _STRIDES if name in numbers]
    factors = [numbers[name] for name in _FACTORS if name in numbers]
    if strides:
        fields["vae_overlap"] = max(0, int(min(sides) - min(strides)))
    elif factors:
        fields["vae_overlap"] = max(0, round(min(sides) * min(factors)))
    if "vae_overlap" in fields:
        how.came("vae_overlap", Told(fields["vae_overlap"], lines))


def _around(how: Placed, fields: dict[str, Any], run: Run, known: Known) -> None:
    """Context managers around the call: autocast and attention kernels."""
    for manager in run.event.within:
        word = manager.made.rpartition(".")[2]
        if word == "autocast":
            dtype = manager.argument(1, "dtype")
            path = dtype.path if isinstance(dtype, Ref) else str(dtype)
            how.autocast = known.dtypes.get(path, "float16")
            args = {"line": manager.line, "dtype": how.autocast}
            how.left.append(Said.of("script-autocast", **args))
        elif word in ("sdpa_kernel", "attention_backend"):
            first = manager.argument(0, "backends", "backend")
            first = first[0] if isinstance(first, (list, tuple)) and first else first
            name = first.last if isinstance(first, Ref) else str(first)
            if name in known.attention:
                _knob(
                    how,
                    fields,
                    "attention",
                    Told(known.attention[name], (manager.line,)),
                    Answers(),
                )
            else:
                how.left.append(
                    Said.of("script-not-modelled", line=manager.line, what=f"{word}({name})")
                )


# --- precision


def _dtypes(
    how: Placed, pipe: Pipe, entry: Model | None, answers: Answers, known: Known
) -> dict[str, Dtype]:
    """Component to dtype: ``*`` for what the pipeline loads itself."""
    found: dict[str, Any] = {}
    told = pipe.dtype or Told(None, (pipe.line,))
    value = told.value
    if isinstance(value, (Open, Thing, Ref)):
        answer = _asked_dtype(how, told, answers, known)
        if answer is None:
            return {}
        value = answer
    if value is None:
        value = DEFAULT_DTYPE
        how.origins.append(
            Origin(field="dtype.*", value=value, lines=told.lines, basis="signature")
        )
        how.notes.append(Said.of("script-default-dtype", line=told.lines[0], dtype=value))
    elif isinstance(value, str):
        how.came("dtype.*", Told(value, told.lines))
    if isinstance(value, dict):
        found["*"] = value.get("default", DEFAULT_DTYPE)
        found |= {
            name: each for name, each in value.items() if name != "default" and _counts(entry, name)
        }
        for name, each in found.items():
            how.came(f"dtype.{name}", Told(each, told.lines))
    else:
        found["*"] = value
    for name, part in pipe.parts.items():
        own = _own_dtype(part, name, entry)
        if own is None or not _counts(entry, name) or not isinstance(own.value, str):
            continue
        if own.value != found["*"]:
            found[name] = own.value
        elif name in found:
            del found[name]
        how.came(f"dtype.{name}", own)
    return {name: each for name, each in found.items() if each in DTYPES}


def _asked_dtype(how: Placed, told: Told, answers: Answers, known: Known) -> Dtype | None:
    answer = dtype_named(answers.take_field("dtype"), known)
    if answer in DTYPES:
        return answer  # type: ignore[no-any-return]
    questions = told.value.questions if isinstance(told.value, Open) else ()
    line = told.lines[0] if told.lines else 0
    for each in questions:
        why = say(each.code, {"what": each.what, "name": each.name or "dtype"})
        how.missing.append(Missing(line=each.line, input=each.name or "dtype", why=why))
    if not questions:
        what = told.value.path if isinstance(told.value, Ref) else told.value.made
        why = say("script-ask-outside", {"what": what, "name": "dtype"})
        how.missing.append(Missing(line=line, input="dtype", why=why))
    return None


def _own_dtype(part: Part, name: str, entry: Model | None) -> Told | None:
    """The dtype of a component that is loaded or cast on its own; None for one that the pipeline loads."""
    if part.dtype is not None and part.dtype.value is not None:
        return part.dtype
    if not part.own or part.scheme is not None:
        return None
    lines = tuple(sorted(part.lines)[:1])
    if part.package == "transformers":  # loads in what its files hold
        spec = None if entry is None else entry.components.get(name)
        return None if spec is None else Told(spec.published_dtype, lines)
    return Told(DEFAULT_DTYPE, lines)


# --- placement


def _offload(how: Placed, fields: dict[str, Any], pipe: Pipe, entry: Model | None) -> None:
    """Where weights wait; group offload by the denoiser's groups."""
    told = pipe.knobs.get("offload")
    groups = {name: part.group for name, part in pipe.parts.items() if part.group is not None}
    how.device = None if pipe.device is None else str(pipe.device.value)
    moved = {part.device for part in pipe.parts.values() if part.device}
    chief = pipe.group or next((g for n, g in groups.items() if n.startswith(_DENOISERS)), None)
    chief = chief or next(iter(groups.values()), None)
    if told is not None and told.value != "none":
        fields["offload"] = told.value
        how.device = how.device or "cuda"
        how.came("offload", told)
    elif chief is not None:
        _grouped(how, fields, chief)
        how.device = how.device or "cuda"
        _differing(how, chief, groups, pipe)
    else:
        fields["offload"] = "none"
        how.device = how.device or ("cuda" if "cuda" in moved else None)
        if pipe.device is not None:
            how.came("offload", Told("none", pipe.device.lines))
    if how.device is None or how.device == "cpu":
        how.device = how.device and "cpu"
        how.notes.append(Said.of("script-no-device", line=pipe.line))
    for name, part in pipe.parts.items():
        if part.device is not None and part.device != how.device and part.group is None:
            what = f"{name}.to({part.device})"
            how.left.append(Said.of("script-not-modelled", line=max(part.lines), what=what))


def _grouped(how: Placed, fields: dict[str, Any], chief: Told) -> None:
    group = chief.value
    fields["offload"] = _GROUPS[group["type"]]
    fields["use_stream"] = group["use_stream"]
    if group["type"] == "block_level" and group["num_blocks_per_group"] is not None:
        fields["num_blocks_per_group"] = 1 if group["use_stream"] else group["num_blocks_per_group"]
    if group["low_cpu_mem_usage"] and group["use_stream"]:
        fields["low_cpu_mem_usage"] = True
    if group["to_disk"]:
        fields["offload_to_disk"] = True
    for name in (
        "offload",
        "use_stream",
        "num_blocks_per_group",
        "low_cpu_mem_usage",
        "offload_to_disk",
    ):
        if name in fields:
            how.came(name, Told(fields[name], chief.lines))


def _differing(how: Placed, chief: Told, groups: Mapping[str, Told], pipe: Pipe) -> None:
    """Components that are not grouped as the denoiser is: one offload is planned for all."""

    def shape(told: Told) -> dict[str, Any]:
        return {name: value for name, value in told.value.items() if name != "lines"}

    others = [name for name, told in groups.items() if shape(told) != shape(chief)]
    alone = list(pipe.excluded)
    if pipe.group is None:
        alone += [n for n, p in pipe.parts.items() if p.group is None and p.own and not p.removed]
    if others or alone or pipe.group is None:
        line = chief.lines[0]
        how.left.append(
            Said.of("script-groups", line=line, names=", ".join([*others, *alone]) or "-")
        )


# --- the rest


def all_encoders_out(pipe: Pipe, entry: Model | None) -> bool:
    """Whether every text encoder is handed over as None."""
    names = [n for n in (entry.components if entry else pipe.parts) if n.startswith("text_encoder")]
    gone = [name for name in names if name in pipe.parts and pipe.parts[name].removed]
    return bool(names) and gone == names


def _counts(entry: Model | None, name: str) -> bool:
    return entry is None or name in entry.components


def _told(part: Part) -> bool:
    return part.own or part.removed or bool(part.scheme or part.group or part.dtype)


def _loaded(name: str, part: Part) -> Loaded:
    dtype = None if part.dtype is None else part.dtype.value
    return Loaded(
        name=name,
        class_=part.kind,
        source=part.source,
        dtype=dtype if dtype in DTYPES else None,
        quantization=None if part.scheme is None else part.scheme.value,
        group=None if part.group is None else Grouped(**part.group.value),
        left_out=part.removed,
        lines=tuple(sorted(part.lines)),
    )


def _rest(how: Placed, pipe: Pipe, entry: Model | None, known: Known) -> None:
    """The scheduler, components that the library does not count, and what nothing here follows."""
    told = pipe.knobs.get("scheduler")
    if told is not None:
        how.scheduler = str(told.value)
        how.came("scheduler", told)
        if how.scheduler in known.twice:
            how.left.append(Said.of("script-scheduler", line=told.lines[0], what=how.scheduler))
    embeds = all_encoders_out(pipe, entry)
    for name, part in pipe.parts.items():
        line = min(part.lines, default=pipe.line)
        counted = entry is not None and name in entry.components
        if part.removed and counted and not (embeds and name.startswith("text_encoder")):
            how.left.append(Said.of("script-left-out", line=line, what=name))
        elif part.own and entry is not None and not counted:
            how.left.append(Said.of("script-component", line=line, what=f"{name} ({part.kind})"))
        elif part.own and counted and part.kind and entry is not None:
            wanted = entry.components[name].class_path.rpartition(".")[2]
            if part.kind != wanted and not part.kind.startswith(("Auto", "Nunchaku")):
                args = {"line": line, "what": f"{name}: {part.kind}", "taken": wanted}
                how.left.append(Said.of("script-other-class", **args))
    for line, what in pipe.left:
        how.left.append(Said.of("script-not-modelled", line=line, what=what))


def _checked(how: Placed, fields: dict[str, Any], line: int) -> Settings:
    """Settings of ``fields``; one that cannot be is left out and said."""
    good: dict[str, Any] = {}
    for name, value in fields.items():
        try:
            validate_settings({name: value})
        except BadRequest as error:
            how.left.append(Said.of("script-bad-setting", line=line, why=str(error)))
        else:
            good[name] = value
    return validate_settings(good)
