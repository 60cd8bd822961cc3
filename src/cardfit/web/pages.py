"""The pages: the configurator and its results, one card, accuracy, records, autopsy.

In: an address. Out: HTML from templates. A page says what it was asked in its address, so that a link reproduces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from fastapi import Path as PathField
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from cardfit import __version__, api
from cardfit.errors import BadRequest, CardfitError
from cardfit.messages import LANGUAGE_NAMES, LANGUAGES, language, say, speaking
from cardfit.plan.answer import Answer, CardRow, Pick
from cardfit.report import accuracy as accuracy_page
from cardfit.report import card_view, html, scatter, words
from cardfit.report import code as code_page
from cardfit.report import rent as rent_page
from cardfit.report import run as run_page
from cardfit.report.plan_view import PlanView, view
from cardfit.report.record_view import autopsy_view, record_view
from cardfit.report.style import Style
from cardfit.request import Dtype
from cardfit.request.read import validate
from cardfit.web import embed, knobs, renting
from cardfit.web.answers import Answers
from cardfit.web.controls import Controls, controls
from cardfit.web.opened import Opened, answers_of, file_name
from cardfit.web.options import MAX_UPLOAD_BYTES
from cardfit.web.problems import Refused, headers_of, status_of
from cardfit.web.questions import MAX_ANSWERS, MAX_TEXT, AutopsyQuestion, PlanQuestion
from cardfit.web.state import State, state_of

TEMPLATES = Path(__file__).with_name("templates")
_LAST = 200  # records that are listed
SOON_S = 0.35  # so long a page waits for its answer before it is sent without
PAGES = (("/", "web-page-plan"), ("/accuracy", "web-page-accuracy"), ("/records", "web-page-records"),
         ("/autopsy", "web-page-autopsy"))  # fmt: skip


class Templates:
    """The templates of the pages; made when the first one is filled."""

    def __init__(self, most_bytes: int = MAX_UPLOAD_BYTES) -> None:
        self._most_bytes = most_bytes
        found = html.environment(TEMPLATES)
        found.globals.update(field_label=_field_label, pages=PAGES, version=__version__)
        self._found = found

    def fill(self, name: str, request: Request, **values: Any) -> str:
        """The page ``name``; ``here`` is the entry of the menu that it belongs to."""
        query = parse_qsl(request.url.query)[:80]

        def lang_query(lang: str) -> str:
            return urlencode([pair for pair in query if pair[0] != "lang"] + [("lang", lang)])

        path = request.url.path if request.method == "GET" or request.url.path == "/open" else "/"
        common = {
            "here": "/" + request.url.path.strip("/").partition("/")[0],
            "path": "/" if path == "/results" else path,
            "lang": request.query_params.get("lang"),
            "most_bytes": self._most_bytes,
            "languages": [(each, LANGUAGE_NAMES[each]) for each in LANGUAGES],
            "lang_query": lang_query,
        }
        return self._found.get_template(name).render(**{**common, **values})


def _field_label(name: str) -> str:
    return say(f"label-{name}")


def routes(answers: Answers) -> APIRouter:
    """The paths of the pages over ``answers``."""
    pages = APIRouter()
    templates = Templates(answers.options.upload_bytes)

    @pages.get("/static/cardfit.css")
    async def style() -> Response:
        return FileResponse(html.FOLDER / "cardfit.css", media_type="text/css")

    @pages.get("/")
    async def plan(request: Request) -> Response:
        found = await _planned(answers, state_of(request.query_params.multi_items()), SOON_S)
        return _page(templates.fill("plan.html", request, **found), found["error"])

    @pages.get("/results")
    async def results(request: Request) -> Response:
        state = state_of(request.query_params.multi_items())
        if state.model_changed:  # other controls, so the whole page
            found = await _planned(answers, state, SOON_S)
            text = templates.fill("plan.html", request, **found)
            more = {
                "HX-Retarget": "#main",
                "HX-Reselect": "#main",
                "HX-Push-Url": f"/?{state.query}",
            }
        else:
            found = await _planned(answers, state, answers.options.within_s)
            text = templates.fill("results.html", request, **{**found, "oob": True})
            more = {"HX-Replace-Url": f"/?{state.query}"}
        return _page(text, found["error"], more)

    _of_files(pages, answers, templates)
    _of_card(pages, answers, templates)
    _of_facts(pages, answers, templates)
    _of_autopsy(pages, answers, templates)
    pages.include_router(embed.routes(answers, templates))
    return pages


def _of_files(pages: APIRouter, answers: Answers, templates: Templates) -> None:
    def shown(request: Request, found: Opened | None, error: CardfitError | None) -> Response:
        values = {
            "found": found,
            "error": "" if error is None else str(error),
            "query_of": partial(_in_language, request),
        }
        wrong = found is not None and any(each.error for each in found.asks)
        if wrong:
            error = BadRequest("web-open-nothing")  # for its status; each field says its own
        return _page(templates.fill("open.html", request, **values), error)

    @pages.get("/open")
    async def file(request: Request) -> Response:
        """The place to drop a file, for browsers without scripts too."""
        return shown(request, None, None)

    @pages.post("/open")
    async def opened(request: Request) -> Response:
        """The configurator as the file says; where that leaves something open, what was read and fields for it."""
        try:
            found = await answers.opened(*await _upload(request, answers.options.upload_bytes))
        except CardfitError as refused:
            return shown(request, None, refused)
        if not found.clear:
            return shown(request, found, None)
        target = f"/?{_in_language(request, found.found[0].query)}"
        return RedirectResponse(target, HTTPStatus.SEE_OTHER)


def _in_language(request: Request, query: str) -> str:
    """``query`` in the language that was asked for in the address."""
    lang = request.query_params.get("lang")
    return f"{query}&{urlencode({'lang': lang})}" if lang in LANGUAGES else query


async def _upload(request: Request, most: int) -> tuple[bytes, str, dict[str, str]]:
    """The file of the form or, where its questions are answered, the workflow in it; name; answers. Raises Refused."""
    try:
        form = request.form(max_files=1, max_fields=MAX_ANSWERS + 10, max_part_size=most)
        async with form as fields:
            given = {name: value for name, value in fields.items() if isinstance(value, str)}
            file = fields.get("file")
            if isinstance(file, UploadFile):
                content, name = await file.read(), file_name(file.filename)
            else:
                content, name = given.get("workflow", "").encode(), file_name(given.get("name"))
    except HTTPException as wrong:
        raise Refused(HTTPStatus.BAD_REQUEST, "web-open-form") from wrong
    if not content:
        raise BadRequest("web-open-nothing")
    return content, name, answers_of(given)


def _of_card(pages: APIRouter, answers: Answers, templates: Templates) -> None:
    @pages.get("/card/{name}")
    async def card(request: Request, name: str) -> Response:
        """One card: stages in its settings, what a change would do, offers, codecs, commands."""
        state = state_of(request.query_params.multi_items())
        if state.error is not None:
            raise state.error
        found = await _card(answers, state, name)
        return _page(templates.fill("card.html", request, **found, query=state.query), None)

    @pages.get("/card/{name}/knobs")
    async def turned(request: Request, name: str) -> Response:
        """What each change would do, planned one by one."""
        state = state_of(request.query_params.multi_items())
        if state.error is not None:
            raise state.error
        entry, question = api.model(state.question.request.model), _only(state, name)
        before = (await answers.plan(question)).value.cards[0]
        lines = await knobs.lines(answers, state, question, entry, before)
        return _page(templates.fill("knobs.html", request, lines=lines, card=before.card), None)

    @pages.get("/card/{name}/rent")
    async def rented(request: Request, name: str) -> Response:
        """By the hour or by the month: where one becomes cheaper than the other."""
        mine, others = renting.split(request.query_params.multi_items())
        state = state_of(others)
        if state.error is not None:
            raise state.error
        row = (await answers.plan(_only(state, name))).value.cards[0]
        found, error = None, None
        try:
            found = (await answers.rent(renting.question(row, mine))).value
        except CardfitError as refused:
            error = refused
        fields = renting.fields(row, mine, error)
        shown = {"fields": fields, "card": row.card, "kept": state.pairs(), "query": state.query}
        told = None if found is None else rent_page.told(found)
        return _page(templates.fill("rent.html", request, found=told, **shown), error)


def _only(state: State, name: str) -> PlanQuestion:
    return state.question.model_copy(update={"cards": (name[:100],)})


async def _card(answers: Answers, state: State, name: str) -> dict[str, Any]:
    question, fact = _only(state, name), (await answers.card(name)).value
    answer = (await answers.plan(question)).value
    row, as_set = answer.cards[0], None
    code = ""
    if row.settings is not None:
        asked = question.model_copy(update={"settings": row.settings})
        as_set = (await answers.plan(asked)).value
        code = _code(answer, row)
    offers = (await answers.offers(fact.id)).value
    view = card_view.view(
        answer,
        as_set,
        fact,
        offers,
        today=date.today(),
        code=code,
        recommended=_recommended(answer),
    )
    return {"view": view}


def _code(answer: Answer, row: CardRow) -> str:
    """The diffusers lines for a row; empty where its pipeline is not part of diffusers."""
    entry = api.model(answer.model.id)
    if not entry.pipeline_in_diffusers or row.settings is None:
        return ""
    pick = Pick(card=row.card, settings=row.settings, why=row.why)
    return code_page.code(answer, pick, code_page.Recipe.of(entry, answer.request))


def _of_facts(pages: APIRouter, answers: Answers, templates: Templates) -> None:
    @pages.get("/accuracy")
    async def accuracy(request: Request) -> Response:
        """Predictions against published measurements."""
        found = (await answers.accuracy()).value
        shown = {
            "scored": accuracy_page.scored(found),
            "tables": accuracy_page.tables(found),
            "chart": scatter.scatter(found.rows),
            "notes": [note.text for note in found.notes],
        }
        return _page(templates.fill("accuracy.html", request, **shown), None)

    @pages.get("/records")
    async def records(request: Request) -> Response:
        """What was measured."""
        try:
            found = (await answers.records(last=_LAST)).value
        except CardfitError as refused:
            text = templates.fill("records.html", request, table=None, trouble=str(refused))
            return _page(text, refused)
        table = run_page.listed(reversed(found), Style())
        return _page(templates.fill("records.html", request, table=table, trouble=""), None)

    @pages.get("/records/{name}")
    async def record(request: Request, name: str) -> Response:
        """One record, or two beside each other."""
        asked = request.query_params.getlist("record")[:2] if name == "compare" else [name]
        if not asked:
            raise BadRequest("missing-field", where="", field="record")
        found = [
            (
                record_view((await answers.record(each[:100])).value),
                await answers.pictures(each[:100]),
            )
            for each in asked
        ]
        return _page(templates.fill("record.html", request, records=found), None)

    @pages.get("/records/{name}/output/{place}")
    async def output(name: Annotated[str, PathField(max_length=100)], place: int) -> Response:
        """A picture that the run kept on this machine."""
        return Response(await answers.picture(name, place), media_type="image/png")


def _of_autopsy(pages: APIRouter, answers: Answers, templates: Templates) -> None:
    async def shown(request: Request, form: Mapping[str, str]) -> Response:
        found, error = None, None
        if form:
            try:
                found = (await answers.autopsy(_autopsy_question(form))).value
            except CardfitError as refused:
                error = refused
        cards = (await answers.cards()).value
        values = {
            "found": None if found is None else autopsy_view(found),
            "error": "" if error is None else str(error),
            "text": form.get("text", ""),
            "model": form.get("model", ""),
            "card": form.get("card", ""),
            "most": MAX_TEXT,
            "entries": sorted(api.models(), key=lambda entry: entry.title.lower()),
            "cards": [(card.id, words.card_name(card.name)) for card in cards],
            "lang": request.query_params.get("lang"),
        }
        return _page(templates.fill("autopsy.html", request, **values), error)

    @pages.get("/autopsy")
    async def asked(request: Request) -> Response:
        """The form."""
        return await shown(request, {})

    @pages.post("/autopsy")
    async def answered(request: Request) -> Response:
        """The form with its answer below."""
        async with request.form(max_files=0, max_fields=10) as form:
            given = {name: str(value) for name, value in form.items()}
        return await shown(request, given or {"text": ""})


def _autopsy_question(form: Mapping[str, str]) -> AutopsyQuestion:
    text = form.get("text", "")
    if not text.strip():
        raise BadRequest("web-autopsy-empty")
    model = form.get("model") or None
    return validate(
        AutopsyQuestion,
        {
            "text": text,
            "request": None if model is None else {"model": model},
            "card": form.get("card") or None,
        },
    )


async def _planned(answers: Answers, state: State, within_s: float) -> dict[str, Any]:
    """What the page of a plan shows: the controls, and the answer or what stands in its place."""
    entry = api.model(state.question.request.model)
    cards = (await answers.cards()).value
    shown: PlanView | None = None
    pending, error = "", state.error
    try:
        if state.asks:
            made = await answers.plan(state.question, within_s=within_s)
            shown = _view(made.value, state, {card.id: card for card in cards})
    except Refused as refused:
        if refused.code in ("web-takes-longer", "web-busy"):
            pending = state.query
        else:
            error = refused
    except CardfitError as refused:
        error = refused
    form = _controls(answers, state, error, cards)
    return {
        "form": form,
        "view": shown,
        "pending": pending,
        "error": error,
        "title": entry.title,
        "was": entry.id,
        "query": state.query,
        "lang": state.lang,
        "every": state.link(every="1"),
        "fewer": state.link(every=""),
        "every_on": state.only.every,
        "stages_caption": say("view-stages-resident"),
        "oob": False,
    }


def _controls(
    answers: Answers, state: State, error: CardfitError | None, cards: Iterable[Any]
) -> Controls:
    from dataclasses import replace

    entry = api.model(state.question.request.model)
    asked = replace(state, error=error)
    dry_runs = answers.options.dry_runs
    entries, shipped = api.models(), answers.shipped()
    return controls(asked, entry, entries, shipped, tuple(cards), dry_runs=dry_runs)


def _view(answer: Answer, state: State, facts: dict[str, Any]) -> PlanView:
    return view(answer, recommended=_recommended(answer), facts=facts, only=state.only)


def _recommended(answer: Answer) -> dict[str, Dtype]:
    parts = api.model(answer.model.id).components
    return {name: part.recommended_dtype for name, part in parts.items() if part.counted}


def _page(text: str, error: CardfitError | None, more: dict[str, str] | None = None) -> Response:
    status = int(HTTPStatus.OK) if error is None else status_of(error)
    headers = {**(more or {}), **({} if error is None else headers_of(error))}
    return HTMLResponse(text, status, headers)


def error_page(request: Request, error: CardfitError) -> Response:
    """The page of an error that belongs to no form."""
    heading = HTTPStatus(status_of(error)).phrase
    text = Templates().fill("error.html", request, heading=heading, text=str(error))
    return _page(text, error)


def warm(answers: Answers) -> None:
    """Begin with what the first visitor will ask for."""
    import asyncio

    async def first() -> None:
        with speaking(language()):
            try:
                await answers.plan(state_of(()).question)
            except CardfitError:
                return  # whoever asks will be told

    answers.background = asyncio.get_running_loop().create_task(first())
