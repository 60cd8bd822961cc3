"""The request that a call of a pipeline makes, field by field with where each comes from.

In: a `Run` from the ledger, what is known of signatures, the library, and answers. Out: a `ScriptRequest` and the
questions that it leaves. A field that the call does not name takes the default of the pipeline's signature; where that
is None, what the library says that the pipeline then does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cardfit.library.load import suggest
from cardfit.library.models import Model
from cardfit.messages import say
from cardfit.messages.said import Said
from cardfit.request import Task
from cardfit.script.books import Run, Told
from cardfit.script.known import Known, signatures
from cardfit.script.placement import placed
from cardfit.script.result import Basis, Missing, Origin, ScriptLora, ScriptRequest
from cardfit.script.scopes import Event
from cardfit.script.things import Answers, entry_of, is_picture, side
from cardfit.script.values import Lines, Open, Question, Ref, Thing, is_plain, path_of

_WHOLE = frozenset(
    {
        "width",
        "height",
        "num_frames",
        "num_inference_steps",
        "batch",
        "max_sequence_length",
        "decode_chunk_size",
    }
)
MAX_NUMBER = 1_000_000
_SIDES = ("width", "height")
_CFG_NEEDS_NEGATIVE = "true_cfg_scale"
_OUTSIDE = "script-ask-outside"


@dataclass(slots=True)
class Maker:
    """Makes one request; collects origins, questions and what nothing here follows."""

    run: Run
    known: Known
    answers: Answers
    given: dict[str, Any]
    signature: Mapping[str, Any]
    entry: Model | None
    origins: list[Origin] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    left: list[Said] = field(default_factory=list)
    notes: list[Said] = field(default_factory=list)

    def came(self, name: str, value: Any, lines: Lines = (), basis: Basis = "script") -> Any:
        """``value``, with where it comes from noted."""
        self.origins.append(
            Origin(field=name, value=value, lines=tuple(sorted(lines)), basis=basis)
        )
        return value

    def lines(self, argument: str) -> Lines:
        """Where an argument of the call stands."""
        return self.run.event.lines.get(argument) or (self.run.event.line,)

    def ask(self, name: str, line: int, code: str, what: str = "", near: str = "") -> None:
        """Note a question, once."""
        args = {"what": what, "name": name, "near": near}
        found = Missing(line=line, input=name, why=say(code, args))
        if found not in self.missing:
            self.missing.append(found)

    def ask_all(self, name: str, questions: tuple[Question, ...]) -> None:
        """The questions of an open value; one without a name in the script is asked under the field's."""
        for each in questions:
            self.ask(each.name or name, each.line, each.code, each.what)

    def number(self, name: str, value: Any, lines: Lines) -> int | float | None:
        """``value`` as the number of a field, or None with a question."""
        answer = self.answers.take_field(name)
        if answer is not None:
            return self.came(name, answer, basis="answer")  # type: ignore[no-any-return]
        if isinstance(value, Open):
            self.ask_all(name, value.questions)
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if good and name in _WHOLE:
            good = value == int(value) and 0 < value <= MAX_NUMBER
        if not good:
            self.ask(name, lines[0] if lines else self.run.event.line, _OUTSIDE, _shown(value))
            return None
        return self.came(name, int(value) if name in _WHOLE else value, lines)  # type: ignore[no-any-return]

    def stated(self, name: str, argument: str) -> int | float | None:
        """The number of an argument that the call names; None where it does not."""
        value = self.given.get(argument)
        return None if value is None else self.number(name, value, self.lines(argument))

    def default(self, name: str, argument: str, of_model: int | float | None) -> int | float | None:
        """A field that the call does not name."""
        default = self.signature.get(argument)
        answer = self.answers.take_field(name)
        if answer is not None:
            return self.came(name, answer, basis="answer")  # type: ignore[no-any-return]
        if isinstance(default, (int, float)) and not isinstance(default, bool):
            return self.came(name, default, (self.run.event.line,), "signature")  # type: ignore[no-any-return]
        if of_model is not None:
            return self.came(name, of_model, (self.run.event.line,), "model")  # type: ignore[no-any-return]
        self.ask(name, self.run.event.line, "script-ask-default", self.run.pipe.kind)
        return None


def request_of(
    run: Run, known: Known, answers: Answers, walked: Sequence[Event]
) -> tuple[ScriptRequest, list[Missing]]:
    """The request of one call and its questions."""
    pipe, event = run.pipe, run.event
    entry, kin = _entry(run, known, answers)
    kind = _class(pipe.kind, entry)
    row = signatures().get(kind, {})
    given = {**dict(zip(row.get("args", ()), event.args, strict=False)), **event.kwargs}
    made = Maker(run, known, answers, given, row.get("defaults", {}), entry)
    if entry is None:
        _ask_model(made)
    how = placed(run, entry, known, answers)
    inputs = _inputs(made)
    width, height = _size(made, kind, inputs)
    steps, effective = _steps(made)
    chunk = made.stated("decode_chunk_size", "decode_chunk_size")
    more = {} if chunk is None else {"decode_chunk_size": int(chunk)}
    guidance = _guidance(made)
    rank = answers.take_field("lora_rank") if pipe.loras else None
    fields: dict[str, Any] = {
        "width": _int(width),
        "height": _int(height),
        "num_frames": _int(_frames(made, kind)),
        "fps": _fps(made),
        "batch": _int(_batch(made)),
        "num_inference_steps": _int(steps),
        "effective_steps": effective,
        "guidance_scale": None if guidance is None else float(guidance),
        "seed": _seed(made, walked),
        "max_sequence_length": _int(_length(made)),
    }
    _not_followed(made, kind, rank)
    request = ScriptRequest(
        line=event.line,
        calls=event.times,
        pipeline=kind,
        repo=pipe.repo,
        variant=pipe.variant,
        model=None if entry is None else entry.id,
        kin=kin,
        task=_task(kind, entry, inputs, known),
        **fields,
        device=how.device,
        autocast=how.autocast,
        scheduler=how.scheduler,
        settings=how.settings.model_copy(update=more),
        components=how.components,
        loras=tuple(ScriptLora(**each) for each in pipe.loras.values()),
        lora_rank=rank if type(rank) is int else None,
        inputs=inputs,
        origins=(*made.origins, *how.origins),
        not_modelled=_once([*how.left, *made.left]),
        notes=_once([*made.notes, *how.notes]),
    )
    if isinstance(event.result, Thing) and None not in (request.width, request.height):
        event.result.size = (request.width, request.height)
    return request, [*how.missing, *made.missing]


def _once(said: list[Said]) -> tuple[Said, ...]:
    found: dict[str, Said] = {}
    for each in said:
        found.setdefault(each.text, each)
    return tuple(found.values())


def _int(value: int | float | None) -> int | None:
    return None if value is None else int(value)


def _shown(value: Any) -> str:
    if isinstance(value, Thing):
        return path_of(value)
    if isinstance(value, Ref):
        return value.path
    return str(value) if is_plain(value) else type(value).__name__


# --- the model and the class


def _entry(run: Run, known: Known, answers: Answers) -> tuple[Model | None, bool]:
    """The library's entry for what the pipeline is loaded from, and whether only its shape is."""
    pipe = run.pipe
    named = answers.take_field("model")
    if isinstance(named, str) and (found := entry_of(named, known)) is not None:
        return found, False
    sources = [pipe.repo, *(part.source for part in pipe.parts.values() if part.source)]
    entries = [(each, entry_of(each, known)) for each in sources]
    for repo, entry in [each for each in entries if pipe.kind in _classes(each[1])] or entries[:1]:
        return entry, entry is not None and (repo or "").lower() in known.kin
    return None, False


def _classes(entry: Model | None) -> set[str]:
    return set() if entry is None else {entry.pipeline, *entry.task_pipelines.values()}


def _class(kind: str, entry: Model | None) -> str:
    """The class that an automatic one stands for."""
    if entry is None or (kind != "DiffusionPipeline" and not kind.startswith("AutoPipelineFor")):
        return kind
    for word, task in (("Image2Image", "image-to-image"), ("Inpainting", "inpainting")):
        if word in kind:
            tasks: Mapping[Any, str] = entry.task_pipelines
            return tasks.get(task, entry.pipeline)
    return entry.pipeline


def _ask_model(made: Maker) -> None:
    """The library lacks what the script loads: the nearest entries, if any are near."""
    repo = made.run.pipe.repo
    near = ", ".join(suggest(repo.rpartition("/")[2])) if repo else ""
    if near:
        made.ask("model", made.run.pipe.line, "script-ask-model", str(repo), near)
    else:
        made.ask("model", made.run.pipe.line, "script-ask-model-plain", repo or made.run.pipe.kind)


# --- fields of the call


def _inputs(made: Maker) -> tuple[str, ...]:
    """The kinds of what goes in beside a prompt."""
    kinds = made.known.inputs.items()
    return tuple(sorted({kind for name, kind in kinds if made.given.get(name) is not None}))


# what an input makes of the task where the class does not say it
_TASKS: dict[str, tuple[Task, ...]] = {
    "mask": ("inpainting",),
    "image": ("image-to-video", "image-editing", "image-to-image"),
    "video": ("video-to-video", "image-to-video"),
    "control": ("video-to-video",),
}
_FROM_TEXT: tuple[Task, ...] = ("text-to-video", "text-to-image", "text-to-audio-video")


def _task(kind: str, entry: Model | None, inputs: tuple[str, ...], known: Known) -> Task | None:
    """What the call makes from what: by the class, else by what goes in, of the tasks that the entry has."""
    wanted = [task for word, tasks in known.tasks.items() if word in kind for task in tasks]
    if entry is None:
        return wanted[0] if wanted else None
    for name in ("mask", "image", "video", "control"):
        wanted += _TASKS[name] if name in inputs else ()
    return next((task for task in (*wanted, *_FROM_TEXT) if task in entry.tasks), None)


def _size(made: Maker, kind: str, inputs: tuple[str, ...]) -> tuple[Any, Any]:
    """Width and height: said, that of the picture that goes in, or a default."""
    found = []
    for name in _SIDES:
        said = made.given.get(name)
        if said is not None:
            found.append(made.number(name, said, made.lines(name)))
        elif made.signature.get(name) is None and _by_input(made, kind, inputs):
            found.append(made.number(name, _side_of_input(made, name), made.lines("image")))
        else:
            entry = made.entry
            of_model = None if entry is None else getattr(entry.defaults, name)
            found.append(made.default(name, name, of_model))
    return found[0], found[1]


def _by_input(made: Maker, kind: str, inputs: tuple[str, ...]) -> bool:
    """Whether such a pipeline takes its size from the picture."""
    if not {"image", "video"} & set(inputs):
        return False
    entry = made.entry
    of_entry = entry is not None and entry.rules.output_size_from_input
    return of_entry or any(word in kind for word in made.known.sized_by_input)


def _side_of_input(made: Maker, name: str) -> Any:
    """Width or height of the first picture that goes in."""
    line = made.run.event.line
    for argument in ("image", "images", "video", "input_image"):
        value = made.given.get(argument)
        while isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, Thing) and (is_picture(value, made.known) or value.size):
            return side(value, name, line, made.answers)
        if isinstance(value, Open):
            return Open(value.questions)
    return Open.of(line, "script-ask-picture")


def _frames(made: Maker, kind: str) -> int | float | None:
    """Frames: said, the default of the signature or the model; one for a picture."""
    entry = made.entry
    names = [n for n, field_ in made.known.call.items() if field_ == "num_frames"]
    for name in names:
        if made.given.get(name) is not None:
            return made.number("num_frames", made.given[name], made.lines(name))
    in_signature = [n for n in names if n in made.signature]
    if (entry is not None and not entry.is_video) or (entry is None and not in_signature):
        return 1
    of_model = None if entry is None else entry.defaults.num_frames
    return made.default("num_frames", (in_signature or names)[0], of_model)


def _steps(made: Maker) -> tuple[int | float | None, int | None]:
    """Steps as said, and how many of them a strength leaves."""
    steps: int | float | None = None
    for name in ("timesteps", "sigmas"):
        value = made.given.get(name)
        if isinstance(value, (list, tuple)):
            steps = made.came("num_inference_steps", len(value), made.lines(name))
        elif value is not None:
            steps = made.number("num_inference_steps", value, made.lines(name))
        if value is not None:
            return steps, _left_by_strength(made, steps)
    if (said := made.given.get("num_inference_steps")) is not None:
        steps = made.number("num_inference_steps", said, made.lines("num_inference_steps"))
    else:
        entry = made.entry
        of_model = None if entry is None else entry.defaults.num_inference_steps
        steps = made.default("num_inference_steps", "num_inference_steps", of_model)
    return steps, _left_by_strength(made, steps)


def _left_by_strength(made: Maker, steps: int | float | None) -> int | None:
    """Steps that run: a pipeline that starts from a picture skips the first ones."""
    for name in ("strength", "denoise_strength"):
        value = made.given.get(name, made.signature.get(name))
        if steps is None or isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if 0 < value < 1:
            basis: Basis = "script" if name in made.given else "signature"
            left = max(1, int(steps * value))
            return int(made.came("effective_steps", left, made.lines(name), basis))
    return None


def _guidance(made: Maker) -> int | float | None:
    """Guidance under the name that the model's pipeline has for it; off where it needs a negative prompt."""
    entry = made.entry
    name = "guidance_scale" if entry is None else entry.defaults.guidance_argument
    of_model = None if entry is None else entry.defaults.guidance_scale
    if name == "guider":
        told = made.run.pipe.knobs.get("guider")
        if told is not None:
            return made.number("guidance_scale", told.value, told.lines)
        return made.default("guidance_scale", name, of_model)
    negative = [made.given.get(n) for n in ("negative_prompt", "negative_prompt_embeds")]
    if name == _CFG_NEEDS_NEGATIVE and negative == [None, None]:
        made.notes.append(Said.of("script-no-negative", line=made.run.event.line, name=name))
        return made.came("guidance_scale", 1.0, (made.run.event.line,), "assumed")  # type: ignore[no-any-return]
    if made.given.get(name) is not None:
        return made.number("guidance_scale", made.given[name], made.lines(name))
    return made.default("guidance_scale", name, of_model)


def _batch(made: Maker) -> int | float | None:
    """Outputs at once: those of a prompt times the prompts."""
    each: int | float | None = 1
    lines: Lines = ()
    for name in (n for n, field_ in made.known.call.items() if field_ == "batch"):
        if made.given.get(name) is not None:
            lines = made.lines(name)
            each = made.number("batch", made.given[name], lines)
    prompts = made.given.get("prompt")
    if isinstance(prompts, (list, tuple)) and len(prompts) > 1 and each is not None:
        del made.origins[-1 if lines else len(made.origins) :]
        return made.came("batch", int(each) * len(prompts), (*lines, *made.lines("prompt")))  # type: ignore[no-any-return]
    if isinstance(prompts, Open) and not lines:
        made.came("batch", each, made.lines("prompt"), "assumed")
    return each


def _fps(made: Maker) -> float | None:
    """Playback rate: of the file that is written, else of the call."""
    told = made.run.fps
    if told is None and made.given.get("frame_rate") is not None:
        told = Told(made.given["frame_rate"], made.lines("frame_rate"))
    if told is None or (made.entry is not None and not made.entry.is_video):
        return None
    found = made.number("fps", told.value, told.lines)
    return None if found is None else float(found)


def _length(made: Maker) -> int | float | None:
    """The longest prompt that the call takes; noted where the model's own is another."""
    found = made.stated("max_sequence_length", "max_sequence_length")
    own = None if made.entry is None else made.entry.defaults.max_sequence_length
    if found is not None and own is not None and found != own:
        line = made.lines("max_sequence_length")[0]
        made.left.append(Said.of("script-length", line=line, asked=found, taken=own))
    return found


def _seed(made: Maker, walked: Sequence[Event]) -> int | None:
    """The seed of the generator that the call is given, else of torch."""
    generator = made.given.get("generator")
    generator = generator[0] if isinstance(generator, (list, tuple)) and generator else generator
    found: Told | None = None
    for event in walked:
        if event is made.run.event:
            break
        own = event.receiver is not None and event.receiver is generator
        if event.last == "manual_seed" and (own or (generator is None and event.receiver is None)):
            found = Told(event.argument(0, "seed"), (event.line,))
    if found is None or type(found.value) is not int or not 0 <= found.value < 2**63:
        return None
    return int(made.came("seed", found.value, found.lines))


def _not_followed(made: Maker, kind: str, rank: Any) -> None:
    """What stands in the call or on the pipeline and is in no request: listed, never dropped."""
    line, entry = made.run.event.line, made.entry
    known = {*made.known.call, *made.known.inputs, *made.known.quiet}
    for name, value in made.given.items():
        if name == "**":
            made.left.append(Said.of("script-open-arguments", line=line))
        elif value is not None and (name not in known or made.known.inputs.get(name) in _UNCOUNTED):
            where = made.lines(name)[-1]
            made.left.append(
                Said.of("script-not-modelled", line=where, what=f"{name}={_shown(value)}")
            )
    if entry is not None and kind not in _classes(entry):
        args = {"line": made.run.pipe.line, "what": kind, "taken": entry.pipeline}
        made.left.append(Said.of("script-other-pipeline", **args))
    if type(rank) is int:
        return
    for each in made.run.pipe.loras.values():
        what = each["source"] or each["name"] or "?"
        made.left.append(Said.of("script-lora-rank", line=each["line"], what=what))


_UNCOUNTED = ("control", "adapter")
