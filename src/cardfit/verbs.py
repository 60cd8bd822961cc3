"""The public verbs beside those of `api`: what asks `plan` more than once, what measures, what compares files.

In: a request and its limits. Out: the value that the command of the same name prints as JSON. What is asked and how the
answers are put together is the business of `cardfit.plan`, `cardfit.measure` and `cardfit.quality`; nothing is computed
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardfit import api
from cardfit.cards.usable import CONTEXT_HIGH_BYTES
from cardfit.errors import BadRequest
from cardfit.fleet.sweeping import sweep
from cardfit.library.rules import resolve
from cardfit.measure.calibrate import calibrate
from cardfit.measure.choosing import choose
from cardfit.measure.decode import decode
from cardfit.measure.probing import probe
from cardfit.measure.verbs import record, run
from cardfit.messages import say
from cardfit.quality.verbs import codecs, compare, export
from cardfit.request import Request, Settings
from cardfit.request.read import read_plan_file
from cardfit.script.reader import read
from cardfit.units import GIB, MIB

if TYPE_CHECKING:
    from datetime import datetime

    from cardfit.comfy.planning import WorkflowPlan
    from cardfit.comfy.result import Reading
    from cardfit.fleet.result import Assignment
    from cardfit.fleet.shots import ShotsFile
    from cardfit.plan.added import Added
    from cardfit.plan.answer import Answer, CardRow, Seconds
    from cardfit.plan.check import Check
    from cardfit.plan.diff import Diff
    from cardfit.plan.largest import Largest
    from cardfit.plan.readme import Kind, Readme, ReadmeCheck
    from cardfit.plan.rent_answer import Rent
    from cardfit.plan.rent_question import RentQuestion
    from cardfit.plan.together import Together
    from cardfit.plan.vary import Vary
    from cardfit.request.budget import Budget
    from cardfit.request.mix import RequestsFile
    from cardfit.script.planning import ScriptPlan
    from cardfit.script.result import ScriptReading

__all__ = [
    "add_model",
    "assign",
    "calibrate",
    "check",
    "choose",
    "codecs",
    "comfy_plan",
    "comfy_read",
    "compare",
    "decode",
    "diff",
    "export",
    "largest",
    "near_misses",
    "probe",
    "read",
    "readme",
    "record",
    "rent",
    "run",
    "script_plan",
    "sweep",
    "together",
    "verify_readme",
]

Progress = Callable[[str, float | None], None]
_LEAST_HOPS = (
    6  # times that less memory is asked for, each time less than what was found by `_LEAST_STEP`
)
_LEAST_STEP = 128 * MIB


def add_model(
    source: str,
    *,
    id: str | None = None,
    output: Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Added:
    """Write a library entry for the diffusers folder or repo ``source``, its parameters counted, and dry-run it once.

    It is called ``id`` (the name of the folder or repo when left out) and stands in ``output``, else with the reader's
    own entries, where every command then knows it by name. Nothing is written where its dry run fails. Raises as
    `plan` does, BadRequest for a name that is taken and for what is no folder or repo, BadFile for a file that exists.
    """
    from cardfit.library import own
    from cardfit.plan.added import added
    from cardfit.predict.memory import estimate

    entry, said = own.made(api.model(source), id)
    file = output or own.file_of(entry.id)
    own.check_free(file, force=force)
    traced = api.trace(source, Settings(offload="none"), progress=progress)
    found = estimate(traced, Settings(offload="none"), published=own.published(entry))
    own.write(entry, file, force=force)
    return added(entry, file, traced, found, said)


def largest(
    request: Request | str,
    settings: Settings | None = None,
    *,
    vary: Vary,
    card: str | None = None,
    target_bytes: int | None = None,
    most: int | None = None,
    progress: Progress | None = None,
    **more: Any,
) -> Largest:
    """The largest ``vary`` (frames, size at the asked aspect ratio, batch) that ``card`` or ``target_bytes`` holds.

    ``request`` says everything else and where the search starts; ``most`` where it ends (frames, pixels of the longer
    side, outputs). ``more`` goes to `plan` (``ram_bytes``, ``disk_bytes``, ``os``, ``here``, files). Raises as `plan`
    does, and BadRequest where the model has nothing to vary or neither or several cards are meant.
    """
    from cardfit.plan.largest import make_largest
    from cardfit.plan.vary import steps

    asked = Request(model=request) if isinstance(request, str) else request
    given = settings or Settings()
    if card is None and target_bytes is None and not more.get("here"):
        raise BadRequest("largest-needs-card")
    if most is not None and most < 1:
        raise BadRequest("largest-bad-most", most=most)
    entry = api.model(asked.model)
    exact, _ = resolve(entry, asked)
    values = steps(entry, exact, vary, most)

    def ask(one: Request, count: int) -> Answer:
        answer = api.plan(
            one,
            given,
            cards=None if card is None else [card],
            target_bytes=target_bytes,
            progress=_said(progress, "largest-progress", count=count + 1),
            **more,
        )
        if len(answer.cards) > 1:  # of this machine
            names = ", ".join(row.card for row in answer.cards)
            raise BadRequest("largest-several-cards", cards=names)
        return answer

    return make_largest(exact, given, vary, values, ask)


def near_misses(answer: Answer, *, progress: Progress | None = None, **more: Any) -> Answer:
    """``answer`` with the nearest job that fits in `near_miss` of a few red and tight rows, and what was tried.

    ``more`` goes to `plan` and should be what the answer was made with (``target_bytes``, ``ram_bytes``, files).
    Slow: each smaller job is planned.
    """
    from cardfit.library.load import all_models
    from cardfit.plan.nearest import with_near_misses

    plan = partial(api.plan, progress=progress, **more)
    return with_near_misses(answer, api.model(answer.model.id), all_models(), plan)


def together(
    requests: RequestsFile | Path, *, progress: Progress | None = None, **more: Any
) -> Together:
    """Each request of a file over the cards, and which card runs all of them, the cheapest named.

    ``more`` goes to `plan`. Raises as `plan` does; BadFile for a file that cannot be read.
    """
    from cardfit.plan.together import together as made
    from cardfit.request.mix import read_requests_file

    found = read_requests_file(requests) if isinstance(requests, Path) else requests
    answers = []
    for at, each in enumerate(found.requests):
        within = _said(progress, "together-progress", at=at + 1, count=len(found.requests))
        answers.append(api.plan(each.request, found.settings, progress=within, **more))
    return made(answers, [each.count for each in found.requests])


def assign(
    shots: ShotsFile | Path,
    machines: Path,
    *,
    start: datetime | None = None,
    allow_tight: bool = False,
    lossless: bool = False,
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    progress: Progress | None = None,
) -> Assignment:
    """Which shot runs on which machine of a farm, in which settings, when each is done, what has no place.

    ``start`` is when work may begin, on this machine's clock: now when left out. ``allow_tight`` lets shots go where
    they are likely inside, ``lossless`` refuses settings that cost the picture something. Raises as `plan` does, and
    BadFile and BadRequest for files that cannot be read.
    """
    from datetime import datetime

    from cardfit import __version__
    from cardfit.cards import load as load_cards
    from cardfit.fleet.assign import Rules, make_assignment
    from cardfit.fleet.farm import kinds_for_rent, read_farm
    from cardfit.fleet.options import Options
    from cardfit.fleet.shots import read_shots
    from cardfit.offers import load as load_offers

    def ask(maker: Callable[..., Options], one: Request, given: Settings, **which: int) -> Options:
        told = _said(progress, "assign-progress", **which)
        return api.ask(
            maker,
            one,
            given,
            cards=(),
            cards_file=cards_file,
            offers_file=offers_file,
            progress=told,
        )

    catalog = load_cards(cards_file)
    begin = start or datetime.now().replace(second=0, microsecond=0)
    return make_assignment(
        read_shots(shots) if isinstance(shots, Path) else shots,
        read_farm(machines, catalog, begin),
        kinds_for_rent(catalog, load_offers(offers_file, cards=catalog)),
        ask,
        start=begin,
        rules=Rules(allow_tight, lossless),
        versions={"cardfit": __version__},
    )


def comfy_read(
    workflow: Path,
    answers: Mapping[str, object] | None = None,
    *,
    image: Path | None = None,
    models: Path | None = None,
) -> Reading:
    """The requests in a ComfyUI workflow: JSON, or a PNG, WEBP or video that ComfyUI wrote.

    ``answers`` gives what the file does not say by ``node.input``, ``image`` a picture of the size that is loaded,
    ``models`` ComfyUI's models folder, whose headers say more than names.
    Raises BadFile, and BadRequest for an answer that fits nothing.
    """
    from cardfit.comfy.reader import read_workflow

    return read_workflow(workflow, answers, image=image, models=models)


def comfy_plan(
    workflow: Path | Reading,
    answers: Mapping[str, object] | None = None,
    *,
    image: Path | None = None,
    models: Path | None = None,
    **more: Any,
) -> WorkflowPlan:
    """Every request of a ComfyUI workflow over the cards, as ComfyUI places it.

    ``more`` goes to `plan`. Raises as `comfy_read` and `plan` do.
    """
    from cardfit.comfy.planning import plan_workflow

    if isinstance(workflow, Path):
        workflow = comfy_read(workflow, answers, image=image, models=models)
    return plan_workflow(workflow, api.plan, **more)


def script_plan(script: Path | ScriptReading, **more: Any) -> ScriptPlan:
    """Every request of a diffusers script over the cards, as the script runs it.

    ``more`` goes to `plan`. Raises as `read` and `plan` do.
    """
    from cardfit.script.planning import plan_script
    from cardfit.script.reader import read_script

    found = read_script(script) if isinstance(script, Path) else script
    return plan_script(found, api.plan, **more)


def check(
    budget: Budget | Path,
    *,
    machine: Path | None = None,
    progress: Progress | None = None,
    **more: Any,
) -> Check:
    """Requests against their limits in memory, seconds and money.

    With ``machine`` (a file of ``probe --json``) those that name no card, or its card, are checked there. ``more`` goes
    to `plan` (``ram_bytes``, ``disk_bytes``, ``os``, files). Raises as `plan` does; BadFile and BadRequest for a budget
    that cannot be read.
    """
    from cardfit.plan.check import check_row, make_check
    from cardfit.request.budget import read_budget

    found = read_budget(budget) if isinstance(budget, Path) else budget
    rows, versions, notes = [], dict[str, str](), []
    theirs = () if machine is None else _cards_in(machine, more.get("cards_file"))
    for at, each in enumerate(found.requests):
        there = bool(theirs) and (
            each.card is None or _id_of(each.card, more.get("cards_file")) in theirs
        )
        answer = api.plan(
            each.request,
            found.settings_of(each),
            cards=None if each.card is None or there else [each.card],
            machine=machine if there else None,
            target_bytes=each.max_peak_bytes,
            progress=_said(progress, "check-progress", at=at + 1, count=len(found.requests)),
            **more,
        )
        rows.append(check_row(at + 1, each, answer))
        versions |= answer.versions
        notes += [note for note in answer.notes if note.code in _CHECK_NOTES and note not in notes]
    return make_check(rows, versions, notes)


# notes of a plan that a check hands on: what it did not count, and rules that changed a request
_CHECK_NOTES = frozenset(
    {"plan-left-out", "plan-comfyui", "side-becomes", "size-becomes", "frames-become"}
)


def diff(before: Answer | Path, after: Answer | Path, *, progress: Progress | None = None) -> Diff:
    """What differs between two answers: stages, cards, versions, settings.

    A path is a file of ``plan --json``, or a plan file (YAML, ``plan --save``), which is planned first. Raises BadFile
    for anything else, and as `plan` does.
    """
    from cardfit.plan.diff import make_diff, read_answer

    def answer(given: Answer | Path) -> Answer:
        if not isinstance(given, Path):
            return given
        if given.suffix not in (".yaml", ".yml"):
            return read_answer(given)
        found = read_plan_file(given)
        return api.plan(found.request, found.settings, progress=progress)

    return make_diff(answer(before), answer(after))


def readme(
    request: Request | str,
    *,
    card: str | None = None,
    machine: Path | None = None,
    progress: Progress | None = None,
    **more: Any,
) -> Readme:
    """Three rows for a README: full precision, at least a quarter less, the least that any setting needs.

    ``card`` times them (that of ``machine``, a file of ``probe --json``, else the cheapest that holds the first row
    when left out). ``more`` goes to `plan` (files). Raises as `plan` does.
    """
    from cardfit.plan import readme as rows

    asked = Request(model=request) if isinstance(request, str) else request
    vae = api.model(asked.model).vae
    full = Settings(
        offload="none",
        vae_tiling=False if vae.tiling and not vae.tiling_required else None,
        vae_slicing=False if vae.slicing else None,
    )

    def row_of(kind: Kind, settings: Settings, size: int) -> CardRow:
        told = _said(progress, "readme-progress", row=say(f"readme-{kind}", {"settings": ""}))
        return api.plan(asked, settings, target_bytes=size, progress=told, **more).cards[0]

    answer = api.plan(asked, full, progress=progress, **more)
    peak = answer.peak.device_bytes
    first = row_of("full", full, 2 * peak)
    less = row_of("less", Settings(), round(rows.LESS_SHARE * peak))
    least = _least(lambda size: row_of("least", Settings(), size))
    if machine is not None and card is None:
        card = _cards_in(machine, more.get("cards_file"))[0]
    timer = rows.reference_card(answer, card)

    def seconds(settings: Settings | None) -> Seconds | None:
        if timer is None or settings is None:
            return None
        found = api.plan(
            asked, settings, cards=[timer], machine=machine, progress=progress, **more
        ).cards
        row = next((each for each in found if each.card == timer), found[0])
        return row.seconds if row.settings == settings else None  # the card holds it otherwise only

    found: list[tuple[Kind, CardRow, Seconds | None]] = [("full", first, seconds(first.settings))]
    if less.verdict in ("fits", "tight") and less.settings != least.settings:
        found.append(("less", less, seconds(less.settings)))
    found.append(("least", least, seconds(least.settings)))
    question = rows.Question(request=asked, card=card)
    return rows.make_readme(question, answer, found, timer, [rows.timed_note(answer, timer)])


def _id_of(card: str, cards_file: Path | None) -> str:
    from cardfit.cards import find, load

    return find(load(cards_file), card).id


def _cards_in(machine: Path, cards_file: Path | None) -> tuple[str, ...]:
    """The ids of the cards of a machine in a file. Raises BadFile, BadRequest where it has none."""
    from cardfit.cards import load
    from cardfit.plan.machine import read_machine

    found = tuple(card.id for card in read_machine(machine, load(cards_file)).machine.cards)
    if not found:
        raise BadRequest("machine-no-card")
    return found


def _least(row_of: Callable[[int], CardRow]) -> CardRow:
    """The row that takes least: less is asked for until nothing holds it without freeing its cache."""
    found = row_of(GIB)
    for _ in range(_LEAST_HOPS):
        size = (found.device_bytes or 0) - _LEAST_STEP
        if size <= CONTEXT_HIGH_BYTES:
            break
        row = row_of(size)
        if row.verdict not in ("fits", "tight") or row.why.code == "plan-tight-limit":
            break
        found = row
    return found


def verify_readme(file: Path, *, progress: Progress | None = None, **more: Any) -> ReadmeCheck:
    """Whether the rows between the markers of ``file`` still come out; ``more`` goes to `plan`.

    Raises BadFile for a file without markers or with one that cannot be read, and as `plan` does.
    """
    from cardfit.plan import readme as rows
    from cardfit.plan.answer import Said

    found = rows.blocks(file)
    moved, notes = list[rows.Moved](), []
    for block in found:
        asked = block.question
        now = readme(asked.request, card=asked.card, progress=progress, **more)
        moved += rows.moved(block, now)
        if rows.other_versions(block, now):
            notes.append(Said.of("readme-versions", line=block.line))
    return rows.ReadmeCheck(
        file=str(file), blocks=len(found), kept=not moved, moved=tuple(moved), notes=tuple(notes)
    )


def rent(
    question: RentQuestion | None = None,
    *,
    cards_file: Path | None = None,
    offers_file: Path | None = None,
    **fields: object,
) -> Rent:
    """By the month, by the hour, from an API or not at all: ``question``, or its ``fields`` (``monthly=286``).

    Raises BadRequest for a figure that cannot be meant, UnknownCard, BadFile.
    """
    from datetime import date

    from cardfit.cards import load as load_cards
    from cardfit.offers import load as load_offers
    from cardfit.offers import providers
    from cardfit.plan.rent import make_rent
    from cardfit.plan.rent_question import question_of

    catalog = load_cards(cards_file)
    market = load_offers(offers_file, cards=catalog)
    asked = question or question_of(fields)
    return make_rent(asked, catalog, market, providers.load(), date.today())


def _said(progress: Progress | None, code: str, **args: object) -> Progress | None:
    """``progress`` with which of many plans it is in front."""
    if progress is None:
        return None
    return lambda what, share: progress(say(code, {**args, "what": what}), share)
