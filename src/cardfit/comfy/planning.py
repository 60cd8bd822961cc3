"""A plan for every request of a workflow: what each pass takes, on which card ComfyUI runs it, and how.

In: a `Reading` and the verb that plans one request. Out: a `WorkflowPlan` with an `Answer` for each request, or why
there is none. Memory is that of the largest pass; the steps of the other passes are added to the seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cardfit.comfy.parts import once
from cardfit.comfy.placement import WorkflowFacts
from cardfit.comfy.result import Part, Pass, Reading, WorkflowRequest
from cardfit.errors import InputError, Note
from cardfit.library import load
from cardfit.library.add_ons import add_ons
from cardfit.library.models import Model
from cardfit.messages.said import Said
from cardfit.plan.answer import Answer, CardRow, Money, Seconds
from cardfit.request import ControlNet, Request
from cardfit.request.read import validate_request
from cardfit.units import human_bytes

SCHEMA = "cardfit.comfy-plan/1"
Planner = Callable[..., Answer]
_GRID = 32
_EMPTY_GUIDANCE_ZERO = (
    "guidance_scale > 0"  # how the library words a scale that is off at 0, not at 1
)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Planned(_Frozen):
    """One request with its answer, or with why there is none."""

    request: Annotated[int, Field(ge=0, description="its place in the reading's requests")]
    answer: Answer | None
    why: Said | None = None
    notes: tuple[Said, ...] = ()


class WorkflowPlan(_Frozen):
    """A workflow as read and planned."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    reading: Reading
    plans: tuple[Planned, ...]


def plan_workflow(reading: Reading, plan: Planner, **more: Any) -> WorkflowPlan:
    """The plans of all requests in ``reading``; ``plan`` plans one, ``more`` goes to it.

    A request that cannot be planned says why and stops nothing; what is wrong with ``more`` (a card that is not known,
    a file that cannot be read) is raised.
    """
    plans = tuple(
        _planned(place, request, plan, more) for place, request in enumerate(reading.requests)
    )
    return WorkflowPlan(reading=reading, plans=plans)


def _planned(place: int, found: WorkflowRequest, plan: Planner, more: dict[str, Any]) -> Planned:
    if found.model is None:
        files = ", ".join(found.seen) or "-"
        return Planned(request=place, answer=None, why=Said.of("comfy-model-unknown", files=files))
    if not found.complete:
        return Planned(request=place, answer=None, why=Said.of("comfy-incomplete"))
    entry = load(found.model)
    notes = list(notes_of(found))
    try:
        request, said = request_of(found, entry)
        notes += said
        facts = facts_of(found)
        ask = partial(plan, settings=found.settings, workflow=facts, **more)
        groups = groups_of(found)
        answer = _with_passes(ask(request), groups, request, ask)
    except InputError as error:
        if error.code in _ABOUT_THE_QUESTION:
            raise
        return Planned(
            request=place, answer=None, why=Said.of("comfy-not-planned", reason=str(error))
        )
    return Planned(
        request=place, answer=answer, notes=tuple(Said.of(n.code, **n.args) for n in notes)
    )


# what the caller asked wrongly, whatever the workflow says
_ABOUT_THE_QUESTION = frozenset(
    {
        "unknown-card",
        "no-gpu-here",
        "plan-bad-ram",
        "plan-bad-disk",
        "plan-bad-outputs",
        "plan-bad-hours",
    }
)


def facts_of(found: WorkflowRequest) -> WorkflowFacts:
    """What the workflow says beside request and settings."""
    how = found.decode
    scaled = tuple(name for name, word in found.quantization_seen.items() if word == "fp8-scaled")
    if how is None:
        return WorkflowFacts(fp8_components=scaled)
    return WorkflowFacts(
        tiled=how.tiled,
        tile=how.tile,
        overlap=how.overlap,
        temporal=how.temporal,
        fp8_components=scaled,
    )


def request_of(found: WorkflowRequest, entry: Model) -> tuple[Request, tuple[Note, ...]]:
    """The request to plan: that of the largest pass with its steps; and what was changed to make it one.

    Sides are cut to the model's multiple, as ComfyUI's latents are.
    """
    step = max(entry.rules.size.refuse_unless, entry.rules.size.floor_to)
    fields: dict[str, Any] = {
        "model": entry.id,
        "batch": found.batch,
        "num_inference_steps": groups_of(found)[0].steps,
        "runtime": "comfyui",
    }
    if found.task is not None:
        fields["task"] = found.task
    if nets := controlnets_of(found, entry):
        fields["controlnets"] = nets
    notes = []
    for name in ("width", "height"):
        asked = getattr(found, name)
        made = max(step, asked // step * step)
        fields[name] = made
        if made != asked:
            notes.append(
                Note("comfy-side", {"side": name, "asked": asked, "made": made, "step": step})
            )
    if entry.is_video:
        fields["num_frames"] = found.num_frames
        if found.fps is not None:
            fields["fps"] = found.fps
    if found.guidance_scale is not None:
        off = _EMPTY_GUIDANCE_ZERO in entry.cfg.how
        fields["guidance_scale"] = (
            max(0.0, found.guidance_scale - 1) if off else found.guidance_scale
        )
    return validate_request(fields), tuple(notes)


def notes_of(found: WorkflowRequest) -> list[Note]:
    """What a plan of ``found`` should say beside its figures."""
    notes = []
    if found.kin:
        notes.append(Note("comfy-kin", {"files": ", ".join(found.seen), "model": found.model}))
    notes += _beside(found, load(found.model)) if found.model is not None else []
    groups = groups_of(found)
    if len(groups) > 1 or groups[0].times > 1:
        words = [f"{g.times} x {g.width}x{g.height}, {g.num_frames}: {g.steps}" for g in groups]
        notes.append(Note("comfy-passes", {"passes": "; ".join(words)}))
    if found.decode is not None:
        notes.append(Note("comfy-save-latent", {"node": found.decode.id}))
    return notes


def _beside(found: WorkflowRequest, entry: Model) -> list[Note]:
    """What is said of LoRAs, and of the models beside the sampler's own."""
    notes = []
    loras = dict.fromkeys(name for each in found.passes for name in each.loras)
    if loras:
        sizes = [part.size_bytes for part in found.parts if part.file in loras]
        known = [size for size in sizes if size is not None]
        size = human_bytes(sum(known)) if known and len(known) == len(sizes) else None
        files = ", ".join(loras)
        notes.append(
            Note("comfy-loras-unread", {"files": files})
            if size is None
            else Note("comfy-loras", {"files": files, "size": size})
        )
    files = ", ".join(part.file for part in _controls(found))
    if files and controlnets_of(found, entry):
        notes.append(Note("comfy-controlnets", {"files": files}))
    elif files:
        notes.append(Note("comfy-not-counted", {"files": files, "model": entry.id}))
    return notes


def _controls(found: WorkflowRequest) -> tuple[Part, ...]:
    return once(part for part in found.parts if part.use == "controlnet")


def controlnets_of(found: WorkflowRequest, entry: Model) -> tuple[ControlNet, ...]:
    """The ControlNets beside the sampler, by the names of their files; none where the entry has no such networks."""
    network = add_ons().controlnets.get(entry.pipeline)
    task = found.task or entry.tasks[0]
    if network is None or task not in network.pipelines:
        return ()
    made = []
    for part in _controls(found):
        name = _plain(part.file)
        repos = {
            own: _plain(facts.get("repo_id", "-").rpartition("/")[2])
            for own, facts in network.named.items()
        }
        like = [own for own, repo in repos.items() if repo in name]
        made.append(ControlNet(model=max(like, key=lambda own: len(repos[own]), default=None)))
    if len({network.named.get(each.model or "", {}).get("class_path") for each in made}) > 1:
        return tuple(
            ControlNet() for _ in made
        )  # no pipeline takes both kinds: the usual shape for all
    return tuple(made)


def _plain(name: str) -> str:
    """Letters and digits alone.

    >>> _plain("FLUX.1-dev-Controlnet_Union.safetensors")
    'flux1devcontrolnetunionsafetensors'
    """
    return "".join(sign for sign in name.lower() if sign.isalnum())


@dataclass(frozen=True, slots=True)
class Group:
    """Passes that share one run of steps, as two experts do: size, steps, and how often such a group runs."""

    width: int
    height: int
    num_frames: int
    steps: int
    times: int = 1


def groups_of(found: WorkflowRequest) -> tuple[Group, ...]:
    """The groups of passes, the largest first, like ones counted together."""
    groups: list[list[Pass]] = []
    for each in found.passes:
        if each.continues and groups:
            groups[-1].append(each)
        else:
            groups.append([each])
    counts: dict[Group, int] = {}
    for group in groups:
        head, steps = group[0], sum(each.steps or 0 for each in group)
        alike = Group(head.width or 0, head.height or 0, head.num_frames or 1, steps)
        counts[alike] = counts.get(alike, 0) + 1
    made = [replace(alike, times=times) for alike, times in counts.items() if alike.steps]
    return tuple(sorted(made, key=lambda g: -g.width * g.height * g.num_frames))


def _with_passes(
    answer: Answer, groups: Sequence[Group], request: Request, ask: Callable[[Request], Answer]
) -> Answer:
    """``answer``, which is for the first of ``groups`` run once, with the steps of all in its seconds and costs.

    The steps of a group take what its run takes beyond one of a single step, and that step.
    """
    rows = {row.card: row for row in answer.cards}
    for place, group in enumerate(groups):
        times = group.times - (place == 0)
        if not times:
            continue
        fields: dict[str, Any] = {"width": _cut(group.width), "height": _cut(group.height)}
        if request.num_frames is not None:
            fields["num_frames"] = group.num_frames
        longer, shorter = (
            ask(request.model_copy(update={**fields, "num_inference_steps": steps}))
            for steps in (group.steps + 1, 1)
        )
        before = {row.card: row.seconds for row in shorter.cards}
        for row in longer.cards:
            rows[row.card] = _longer(rows[row.card], row.seconds, before.get(row.card), times)
    return answer.model_copy(update={"cards": tuple(rows.values())})


def _longer(row: CardRow, more: Seconds | None, less: Seconds | None, times: int) -> CardRow:
    if row.seconds is None or more is None or less is None:
        return row
    had = row.seconds
    seconds = Seconds(
        low=had.low + times * (more.low - less.low),
        likely=had.likely + times * (more.likely - less.likely),
        high=had.high + times * (more.high - less.high),
    )
    cost = row.cost_per_output
    if cost is not None and had.likely > 0:
        cost = Money(amount=cost.amount * seconds.likely / had.likely, currency=cost.currency)
    return row.model_copy(update={"seconds": seconds, "cost_per_output": cost})


def _cut(side: int) -> int:
    """A side on the grid of 32 pixels, which the latents of every model lie on."""
    return max(_GRID, side // _GRID * _GRID)
