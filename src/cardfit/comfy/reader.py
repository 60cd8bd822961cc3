"""A workflow file as requests: the whole way from a file to a `Reading`.

In: a path, bytes or parsed JSON, and answers to what a file cannot say. Out: the `Reading`. Nothing is guessed: a value
that the file does not have is a question in ``missing``, a node type that is not known is in ``unknown_nodes``, a model
that the library lacks is None with its file names. Raises BadFile and BadRequest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardfit.comfy.chains import Chain, Chains, Step
from cardfit.comfy.files import picture_size, raw_of, read_raw
from cardfit.comfy.graph import Graph, Node, graph_of, shown
from cardfit.comfy.nodes import Known, known
from cardfit.comfy.parts import (
    library_of,
    once,
    parts_of,
    precision_settings,
    task_of,
    wanted_files,
)
from cardfit.comfy.result import Decoding, Part, Pass, Reading, WorkflowRequest, Writes
from cardfit.comfy.values import MAX_SIDE, Found, Missing, Question, Unknown, Values
from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.messages.said import Said

_ROUNDS = 6  # an answer can raise another question; a value's way is no longer than this
_USUAL_SIDE = 1024
_EMBEDDED = "embedded"  # how the library words guidance that is an input of the denoiser
_PICTURES = ("LoadImage", "LoadImageOutput", "LoadImageMask")


def read_workflow(
    data_or_path: Mapping[str, Any] | bytes | str | Path,
    answers: Mapping[str, object] | None = None,
    *,
    image: Path | None = None,
    models: Path | None = None,
    name: str = "workflow",
) -> Reading:
    """The requests in a workflow.

    ``answers`` gives values by ``node.input`` (id or title) or, for every question of that name, by ``input`` alone;
    they win over what the file says. ``image`` is a picture whose size answers for every picture that is loaded;
    ``models`` is ComfyUI's models folder: the headers of files that are there say more than their names. Raises
    BadFile for a file that is no workflow or whose graph cannot be, BadRequest for an answer that fits nothing.
    """
    if isinstance(data_or_path, bytes):
        raw, path = raw_of(data_or_path, name), name
    elif isinstance(data_or_path, (str, Path)):
        raw, path = read_raw(Path(data_or_path)), str(data_or_path)
    else:
        raw, path = data_or_path, name
    data = known()
    graph = graph_of(raw, data, path)
    given, open_ = _answers(graph, answers or {})
    if image is not None:
        given = _picture_answers(graph, image) | given
    used: set[str] = set()
    reading = _read(graph, data, given, path, models)
    for _ in range(_ROUNDS):
        more = {
            (each.id, each.input): open_[each.input]
            for each in reading.missing
            if each.input in open_ and (each.id, each.input) not in given
        }
        if not more:
            break
        used |= {name for _, name in more}
        given |= more
        reading = _read(graph, data, given, path, models)
    if left := sorted(set(open_) - used):
        asked = ", ".join(dict.fromkeys(each.input for each in reading.missing)) or "-"
        raise BadRequest("comfy-answer-unused", answer=left[0], asked=asked)
    return reading


def value_of(text: str) -> object:
    """What a person typed as a value: a number, true or false, else the text.

    >>> value_of("1280"), value_of("3.5"), value_of("true"), value_of("16:9")
    (1280, 3.5, True, '16:9')
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, (bool, int, float)) else text


def default_for(reading: Reading, question: Missing) -> int | float | None:
    """What a person at a terminal is offered: the model's own size, frames and rate, else a usual side, or None.

    A default is never taken unless somebody confirms it.
    """
    known_model = next((each.model for each in reading.requests if each.model), None)
    if known_model is None:
        return _USUAL_SIDE if question.input in ("width", "height") else None
    defaults = load(known_model).defaults
    found: dict[str, int | float | None] = {
        "width": defaults.width,
        "height": defaults.height,
        "frames": defaults.num_frames,
        "fps": defaults.fps,
    }
    return found.get(question.input)


def _answers(
    graph: Graph, answers: Mapping[str, object]
) -> tuple[dict[tuple[str, str], Any], dict[str, Any]]:
    """Answers to inputs of named nodes, and those to every question of a name."""
    given: dict[tuple[str, str], Any] = {}
    open_: dict[str, Any] = {}
    titles: dict[str, list[str]] = {}
    for node in graph.nodes.values():
        titles.setdefault(node.title, []).append(node.id)
    for key, value in answers.items():
        _check_answer(key, value)
        place = _place(graph, titles, key)
        if place is None and "." in key:
            names = ", ".join(sorted(titles)[:12])
            raise BadRequest("comfy-answer-no-node", answer=key, allowed=names)
        if place is None:
            open_[key] = value
        else:
            given[place] = value
    return given, open_


def _place(graph: Graph, titles: Mapping[str, list[str]], key: str) -> tuple[str, str] | None:
    """The node and input that ``node.input`` names; titles and inputs may have dots of their own."""
    for at in (at for at, sign in enumerate(key) if sign == "."):
        node, name = key[:at], key[at + 1 :]
        if node in graph.nodes:
            return node, name
        found = titles.get(node, [])
        if len(found) > 1:
            raise BadRequest("comfy-answer-several", answer=key, node=node, ids=", ".join(found))
        if found:
            return found[0], name
    return None


def _check_answer(key: str, value: object) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not isinstance(value, (bool, int, float, str)):
        raise BadRequest("comfy-answer-bad", answer=key, found=value)
    if number and not abs(float(value)) < 2**63:  # NaN too
        raise BadRequest("comfy-answer-bad", answer=key, found=value)
    if key.rpartition(".")[2] in ("width", "height", "frames") and not (
        isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SIDE
    ):
        raise BadRequest("comfy-answer-size", answer=key, found=value, limit=MAX_SIDE)


def _picture_answers(graph: Graph, image: Path) -> dict[tuple[str, str], Any]:
    width, height = picture_size(image)
    found: dict[tuple[str, str], Any] = {}
    for node in graph.nodes.values():
        if node.type in _PICTURES:
            found |= {(node.id, "width"): width, (node.id, "height"): height}
    return found


def _read(
    graph: Graph,
    data: Known,
    given: Mapping[tuple[str, str], Any],
    path: str,
    models: Path | None,
) -> Reading:
    values = Values(graph, data, given, path)
    finder = Chains(graph, data, values)
    requests, missing, notes = [], list[Question](), list[Said]()
    for chain in finder.find():
        if chain.makes is not None:
            notes.append(Said.of("comfy-no-picture", node=chain.steps[0].node.title))
            continue
        if not any(step.value("steps") != 0 for step in chain.steps):
            continue
        made = _request(chain, finder, values, models)
        requests.append(made)
        missing += [each for each in chain.missing if each not in missing]
    strange = sorted({shown(n.type) for n in graph.nodes.values() if not data.knows(n.type)})
    if not requests and not notes:
        notes.append(Said.of("comfy-no-sampler"))
    return Reading(
        file=path,
        form="ui" if graph.form == "ui" else "api",
        requests=tuple(requests),
        missing=tuple(Missing.of(each) for each in missing),
        unknown_nodes=tuple(strange),
        files=wanted_files(finder.running.values(), data, values, path, models),
        notes=tuple(notes),
    )


def _request(chain: Chain, finder: Chains, values: Values, models: Path | None) -> WorkflowRequest:
    """The request of one chain, from its passes."""
    steps = [step for step in chain.steps if step.value("steps") != 0]
    loaded = parts_of(chain, finder.known, values, models)
    by_node: dict[tuple[str, str], Part] = {(part.id, part.use): part for part in loaded}
    parts = once(loaded)
    passes = tuple(_pass(step, by_node) for step in steps)
    entry_id, kin = library_of(passes, parts)
    entry = None if entry_id is None else load(entry_id)
    video = entry.is_video if entry is not None else None
    largest = max(steps, key=_area)
    origins: dict[str, tuple[str, ...]] = {}

    def take(step: Step, name: str, field: str) -> Any:
        found = step.found.get(name)
        if found is None:
            return None
        origins[field] = found.origins
        return found.value

    frames, batch = take(largest, "frames", "num_frames"), take(largest, "batch", "batch")
    if (
        video is False and frames is not None
    ):  # pictures one after another are a batch of an image model
        frames, batch = 1, (batch or 1) * frames
    guidance = chain.guidance
    if guidance is None and not (entry is not None and _EMBEDDED in entry.cfg.how):
        guidance = steps[0].found.get("cfg")
    if guidance is not None:
        origins["guidance_scale"] = guidance.origins
    origins["num_inference_steps"] = tuple(
        dict.fromkeys(
            o for s in _main(steps) for f in [s.found.get("steps")] if f for o in f.origins
        )
    )
    writes = tuple(_writes(node, finder, values, chain) for node in chain.ends)
    fps = next((each.fps for each in writes if each.fps is not None), None)
    width, height = take(largest, "width", "width"), take(largest, "height", "height")
    notes = () if entry is not None else (_unseen(passes),)
    settings, seen = precision_settings(entry, parts)
    return WorkflowRequest(
        model=entry_id,
        kin=kin,
        seen=tuple(dict.fromkeys(each.file for each in passes if each.file)),
        task=task_of(entry, chain.marks, frames, plays=_plays(chain, finder.known)),
        width=width,
        height=height,
        num_frames=frames,
        fps=fps,
        batch=batch or 1,
        num_inference_steps=_total([step.value("steps") for step in _main(steps)]),
        guidance_scale=None if guidance is None else _number(guidance),
        seed=_seed(steps[0]),
        settings=settings,
        quantization_seen=seen,
        passes=passes,
        parts=parts,
        decode=_decoding(chain, finder.known, values),
        writes=writes,
        origins={name: each for name, each in origins.items() if each},
        notes=notes,
    )


def _unseen(passes: tuple[Pass, ...]) -> Said:
    files = ", ".join(dict.fromkeys(each.file for each in passes if each.file)) or "-"
    return Said.of("comfy-model-unknown", files=files)


def _plays(chain: Chain, data: Known) -> bool:
    """Whether what is made is written as a video."""
    kinds = [data.kind(node.type) for node in chain.ends]
    return any(kind is not None and kind.saves is not None and kind.saves.fps for kind in kinds)


def _area(step: Step) -> int:
    return int(
        (step.value("width") or 0) * (step.value("height") or 0) * (step.value("frames") or 1)
    )


def _main(steps: list[Step]) -> list[Step]:
    """The first pass and those that go on with its steps."""
    found = steps[:1]
    for step in steps[1:]:
        if not step.direct:
            break
        found.append(step)
    return found


def _total(counts: list[Any]) -> int | None:
    return None if None in counts else sum(counts)


def _number(found: Found) -> float | None:
    value = found.value
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _seed(step: Step) -> int | None:
    value = step.value("seed")
    return value if isinstance(value, int) and 0 <= value < 2**64 else None


def _pass(step: Step, parts: Mapping[tuple[str, str], Part]) -> Pass:
    file, model, loras = None, None, []
    for node in step.models:
        for use in ("denoiser", "checkpoint"):
            if (part := parts.get((node.id, use))) is not None:
                file, model = part.file, part.model
        if (part := parts.get((node.id, "lora"))) is not None:
            loras.append(part.file)
    cfg = step.found.get("cfg")
    denoise = step.found.get("denoise")
    return Pass(
        node=step.node.title,
        id=step.node.id,
        model=model,
        file=file,
        loras=tuple(loras),
        width=step.value("width"),
        height=step.value("height"),
        num_frames=step.value("frames"),
        batch=step.value("batch"),
        steps=step.value("steps"),
        cfg=None if cfg is None else _number(cfg),
        denoise=None if denoise is None else _number(denoise),
        continues=step.direct,
    )


def _decoding(chain: Chain, data: Known, values: Values) -> Decoding | None:
    node = chain.decoder
    kind = None if node is None else data.kind(node.type)
    if node is None or kind is None or kind.decode is None:
        return None

    def of(rule: str | None) -> int | None:
        if rule is None:
            return None
        try:
            found = values.rule(node, rule).value
        except Unknown:
            return None
        return int(found) if isinstance(found, (int, float)) else None

    how = kind.decode
    return Decoding(
        node=node.title,
        id=node.id,
        tiled=bool(of(how.tiled)),
        tile=of(how.tile),
        overlap=of(how.overlap),
        temporal=of(how.temporal),
        temporal_overlap=of(how.temporal_overlap),
    )


def _writes(node: Node, finder: Chains, values: Values, chain: Chain) -> Writes:
    kind = finder.known.kind(node.type)
    assert kind is not None and kind.saves is not None
    saves = kind.saves

    def text(rule: str | None) -> str | None:
        if rule is None:
            return None
        try:
            found = values.rule(node, rule).value
        except Unknown:
            return None
        return shown(found) if isinstance(found, str) else None

    fps = None
    if saves.fps is not None:
        rule = saves.fps
        found = finder.ask(chain, lambda: values.rule(node, rule))
        fps = None if found is None else _number(found)
        if fps is not None and not 0 < fps <= 1000:
            raise BadFile(
                "comfy-bad-number",
                path=values.path,
                node=f"{node.title} (#{node.id})",
                input="fps",
                found=fps,
            )
    return Writes(
        node=node.title,
        id=node.id,
        container=text(saves.container),
        codec=text(saves.codec),
        fps=fps,
    )
