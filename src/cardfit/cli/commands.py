"""The commands: each parses, calls the verb of the same name in `cardfit.api`, and hands the value to `report`.

In: flags. Out: an exit code. A docstring here is the help that a person reads. What is heavy is imported inside.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from cardfit.cli import typed
from cardfit.cli.cards import list_cards
from cardfit.cli.flags import (
    As,
    Os,
    RequestFlags,
    SettingsFlags,
    asked,
    disk_bytes,
    outputs_per_month,
    ram_bytes,
    target_bytes,
)
from cardfit.cli.offers import update_offers
from cardfit.cli.read import is_file_to_read, plan_read_file
from cardfit.cli.sequence import Asked, one_question, refuse
from cardfit.cli.sequence import run as run_file
from cardfit.cli.session import NO_SESSION, SessionFlags, named, session_from
from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say
from cardfit.request import Dtype, Task

if TYPE_CHECKING:
    from cardfit.plan.answer import Answer

ANSWERED, DOES_NOT_FIT = 0, 1
_SPREAD = Parameter(name="*")  # the fields of the class are the flags
_NONE_REQUEST, _NONE_SETTINGS = RequestFlags(), SettingsFlags()

Cards = Annotated[
    list[str] | None,
    Parameter(name="--card", help=say("help-card"), negative=(), show_default=False),
]
Json = Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())]
CardsFile = Annotated[Path | None, Parameter(name="--cards-file", help=say("help-cards-file"))]
OffersFile = Annotated[Path | None, Parameter(name="--offers-file", help=say("help-offers-file"))]


def _switch(code: str) -> Any:
    return Parameter(help=say(code), negative=(), show_default=False)


def plan(
    model: Annotated[str | None, Parameter(help=say("help-model"))] = None,
    /,
    *,
    requests: Annotated[Path | None, Parameter(help=say("help-requests"))] = None,
    sequence: Annotated[bool, _switch("help-sequence")] = False,
    request: Annotated[RequestFlags, _SPREAD] = _NONE_REQUEST,
    settings: Annotated[SettingsFlags, _SPREAD] = _NONE_SETTINGS,
    card: Cards = None,
    ram: Annotated[str | None, Parameter(help=say("help-ram"))] = None,
    disk: Annotated[str | None, Parameter(help=say("help-disk"))] = None,
    os: Annotated[Os, Parameter(help=say("help-os"))] = "linux",
    here: Annotated[bool, _switch("help-here")] = False,
    machine: Annotated[Path | None, Parameter(help=say("help-machine"))] = None,
    cards_file: CardsFile = None,
    offers_file: OffersFile = None,
    target: Annotated[str | None, Parameter(help=say("help-target"))] = None,
    lock: Annotated[Path | None, Parameter(help=say("help-lock"))] = None,
    near_misses: Annotated[bool, _switch("help-near-misses")] = False,
    outputs: Annotated[str | None, Parameter(help=say("help-outputs"))] = None,
    hours_per_week: Annotated[float | None, Parameter(help=say("help-hours"))] = None,
    session: Annotated[SessionFlags, _SPREAD] = NO_SESSION,
    check_: Annotated[bool, Parameter(name="--check", help=say("help-check"), negative=())] = False,
    save: Annotated[Path | None, Parameter(help=say("help-save"))] = None,
    force: Annotated[bool, _switch("help-force")] = False,
    as_: Annotated[As | None, Parameter(name="--as", help=say("help-as"))] = None,
    all_: Annotated[bool, Parameter(name="--all", help=say("help-all"), negative=())] = False,
    json: Json = False,
) -> int:
    """Lay one exact request over every card: which hold it, in which settings, what stops the others.

    Try:

    cardfit plan wan2.1-t2v-14b --width 1280 --height 720 --num-frames 81

    cardfit plan flux.1-dev --card rtx-4090 --dtype bf16 --as code

    cardfit plan flux.1-dev --as skypilot > flux.yaml

    cardfit plan wan2.1-t2v-14b --card l4 --ram 64GB --check

    cardfit plan flux.1-dev --target "24 GiB"

    cardfit plan flux.1-dev --card rtx-4090 --outputs 2000/month --down 1Gbit --boot 120 --keep 0.5

    cardfit plan --requests mix.yaml --sequence --card l4
    """
    if json and as_ is not None:
        raise BadRequest("bad-together", one="--json", other=f"--as {as_}")
    from cardfit import api
    from cardfit.report import out

    if save is not None and save.exists() and not force:
        raise BadFile("planfile-exists", path=save)
    single = one_question(model, requests, sequence)
    more: dict[str, Any] = {
        "ram_bytes": ram_bytes(ram),
        "disk_bytes": disk_bytes(disk),
        "os": os,
        "here": here,
        "machine": machine,
        "offers_file": offers_file,
        "outputs_per_month": outputs_per_month(outputs),
        "hours_per_week": hours_per_week,
        "session": session_from(session),
        "target_bytes": target_bytes(target),
        "lock": lock,
    }
    names = tuple(card) if card else None
    if single is None:
        assert requests is not None
        refuse(
            {"--save": save, f"--as {as_}": as_, "--all": all_, "--near-misses": near_misses},
            "--requests",
        )
        other: dict[str, object] = {
            "--ram": ram,
            "--disk": disk,
            "--here": here,
            "--machine": machine,
            "--outputs": outputs,
            "--hours-per-week": hours_per_week,
            **named(session),
        }
        other |= {"--offers-file": offers_file, "--target": target, "--lock": lock}
        what = Asked(requests, sequence, settings, names, cards_file, check_, json, other)
        return run_file(what, request, **more)
    if is_file_to_read(single):
        refuse({"--save": save, f"--as {as_}": as_, "--near-misses": near_misses}, single)
        shown: dict[str, Any] = {"check": check_, "every": all_, "json": json, **more}
        return plan_read_file(single, names, (request, settings), cards_file=cards_file, **shown)
    wanted, knobs = asked(single, request, settings)
    with out.progress(quiet=json) as progress:
        more |= {"cards_file": cards_file, "progress": progress}
        answer = api.plan(wanted, knobs, cards=names, **more)
        if near_misses:
            from cardfit import verbs

            answer = verbs.near_misses(answer, **more)
    _show(answer, every=all_, as_=as_, json=json)
    if save is not None:
        _save(answer, save, force)
    fits = any(row.verdict == "fits" for row in answer.cards)
    return DOES_NOT_FIT if check_ and not fits else ANSWERED


def _show(answer: Answer, *, every: bool, as_: As | None, json: bool) -> None:
    from cardfit.report import dump, line, out
    from cardfit.report import plan as page

    style = out.style_of()
    if json:
        out.write(dump.one(answer))
    elif as_ == "line":
        out.write(line.line(answer, style, _recommended(answer)))
    elif as_ == "code":
        out.write(_code(answer))
    elif as_ in ("skypilot", "ssh"):
        from cardfit.report import remote

        out.write(remote.skypilot(answer) if as_ == "skypilot" else remote.ssh(answer))
    else:
        dtypes, command = _recommended(answer), typed.again()
        out.write(page.lines(answer, style, every=every, command=command, recommended=dtypes))
        out.remarks(page.notes(answer, style))


def _recommended(answer: Answer) -> dict[str, Dtype]:
    from cardfit import api

    parts = api.model(answer.model.id).components
    return {name: part.recommended_dtype for name, part in parts.items() if part.counted}


def _code(answer: Answer) -> str:
    from cardfit import api
    from cardfit.report import code, words

    pick = words.best(answer)
    model = api.model(answer.model.id)
    if pick is None:
        raise BadRequest("code-no-pick", model=answer.model.id)
    if not model.pipeline_in_diffusers:
        raise BadRequest("code-not-in-diffusers", pipeline=model.pipeline, model=model.id)
    return code.code(answer, pick, code.Recipe.of(model, answer.request))


def _save(answer: Answer, file: Path, force: bool) -> None:
    from cardfit.report import out, words
    from cardfit.request import PlanFile, Request
    from cardfit.request.read import write_plan_file

    pick = words.best(answer)
    fields = answer.request.model_dump(exclude_none=True)
    settings = answer.settings if pick is None else pick.settings
    write_plan_file(file, PlanFile(request=Request(**fields), settings=settings), force=force)
    out.error(say("saved", {"file": file}))


def matrix(
    *models: Annotated[str, Parameter(help=say("help-models"))],
    card: Cards = None,
    task: Annotated[Task | None, Parameter(help=say("help-task"))] = None,
    cards_file: CardsFile = None,
    offers_file: OffersFile = None,
    json: Json = False,
) -> int:
    """Models against cards: the best precision each card holds, exact and by the rule of thumb.

    Try:

    cardfit matrix --task text-to-video --card l4 --card rtx-a6000

    cardfit matrix flux.1-dev qwen-image
    """
    from cardfit import api
    from cardfit.report import dump, out
    from cardfit.report import matrix as page

    with out.progress(quiet=json) as progress:
        found = api.matrix(
            models or None,
            cards=tuple(card) if card else None,
            task=task,
            cards_file=cards_file,
            offers_file=offers_file,
            progress=progress,
        )
    style = out.style_of()
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(f"{say('note')}  {note.text}" for note in found.notes)
    return ANSWERED


def trace(
    model: Annotated[str, Parameter(help=say("help-model"))],
    /,
    *,
    request: Annotated[RequestFlags, _SPREAD] = _NONE_REQUEST,
    settings: Annotated[SettingsFlags, _SPREAD] = _NONE_SETTINGS,
    json: Json = False,
) -> int:
    """What one request does, independent of any card: calls, weights, the activation peak and where it stands, FLOPs.

    Try:

    cardfit trace flux.1-dev --width 1024 --height 1024

    cardfit trace wan2.1-t2v-14b --num-frames 81 --json
    """
    from cardfit import api
    from cardfit.report import dump, out
    from cardfit.report import trace as page

    wanted, knobs = asked(model, request, settings)
    with out.progress(quiet=json) as progress:
        found = api.trace(wanted, knobs, progress=progress)
    if json:
        out.write(dump.many("trace", page.rows(found), **page.facts(found)))
    else:
        out.write(page.lines(found, out.style_of()))
    return ANSWERED


def cards(
    name: Annotated[str | None, Parameter(help=say("help-card-id"))] = None,
    /,
    *,
    model: Annotated[str | None, Parameter(help=say("help-cards-model"))] = None,
    cards_file: CardsFile = None,
    offers_file: OffersFile = None,
    json: Json = False,
) -> int:
    """The cards of the catalog with what a price buys of them, or every figure of one with its source.

    Try:

    cardfit cards

    cardfit cards --model flux.1-dev

    cardfit cards rtx-4090 --json
    """
    from cardfit import api
    from cardfit.cards import find
    from cardfit.report import dump, out, tables

    style = out.style_of()
    listed = api.cards(cards_file=cards_file)
    if name is not None:
        refuse({"--model": model, "--offers-file": offers_file}, name)
        found = find({card.id: card for card in listed}, name)
        out.write(dump.one(found) if json else tables.card(found, style))
        return ANSWERED
    return list_cards(listed, model, cards_file, offers_file, json)


def offers(
    action: Annotated[Literal["update"] | None, Parameter(help=say("help-offers-action"))] = None,
    /,
    *,
    source: Annotated[str | None, Parameter(name="--from", help=say("help-offers-from"))] = None,
    card: Annotated[str | None, Parameter(help=say("help-card-id"))] = None,
    cards_file: CardsFile = None,
    offers_file: OffersFile = None,
    json: Json = False,
) -> int:
    """The offers at hand, each with its date and its source.

    Try:

    cardfit offers --card l4

    cardfit offers --offers-file mine.csv --json

    cardfit offers update --from gpuhunt
    """
    if action is not None or source is not None:
        if action is None:
            raise BadRequest("bad-together", one="--from", other="offers without update")
        files = {"--cards-file": cards_file, "--offers-file": offers_file}
        refuse({"--card": card, **files}, "update")
        return update_offers(source, json)
    from datetime import date

    from cardfit import api
    from cardfit.report import dump, out, tables

    found = api.offers(card=card, cards_file=cards_file, offers_file=offers_file)
    style = out.style_of()
    out.write(
        dump.many("offers", found) if json else tables.offers(found, style, today=date.today())
    )
    return ANSWERED
