"""The configurator in the frame of a host's own page: its offers alone, its colours, its link.

In: what `cardfit serve` was told about the host. Out: the checked `Embed`, and the routes of the frame: the page, its
colours, its sign. An address carries ids alone; prices and wording are the server's. Memory is given as a band, and
said to be predicted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from string import Formatter
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from cardfit import api
from cardfit.errors import BadFile, BadRequest, CardfitError
from cardfit.library.models import Model
from cardfit.messages import LANGUAGES, say
from cardfit.report import embed_view
from cardfit.report.site import Preset
from cardfit.units import KIB
from cardfit.web.answers import Answers
from cardfit.web.options import Embed
from cardfit.web.problems import Refused, status_of
from cardfit.web.questions import MAX_CARDS, PlanQuestion
from cardfit.web.state import DEFAULT_MODEL

COLOURS = ("accent", "ground", "surface", "ink", "soft", "line")
MAX_LOGO_BYTES = 200 * KIB
_PICTURES = {".png": "image/png", ".svg": "image/svg+xml", ".webp": "image/webp"}
_ORIGIN = re.compile(
    r"https?://[A-Za-z0-9.\-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?"
)
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_SOON_S = 5.0


def embed_of(
    origins: Sequence[str],
    link: str | None,
    colours: Sequence[str],
    logo: Path | None,
    offers_file: Path | None,
) -> Embed | None:
    """What the flags say of the host's page; None where they name no origin. Raises BadRequest and BadFile."""
    if not origins:
        if link or colours or logo:
            raise BadRequest("embed-needs-origin")
        return None
    if offers_file is None:
        raise BadRequest("embed-needs-offers")
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise BadRequest("embed-bad-origin", asked=origin)
    return Embed(
        origins=tuple(dict.fromkeys(origin.lower() for origin in origins)),
        link=None if link is None else _link(link),
        colours=tuple(_colour(each) for each in colours),
        logo=None if logo is None else _logo(logo),
    )


def _link(text: str) -> str:
    """A template whose fields are ids. Raises BadRequest."""
    try:
        fields = [each[1:] for each in Formatter().parse(text) if each[1] is not None]
        parts = urlsplit(text)
    except ValueError:
        raise BadRequest("embed-bad-link", asked=text) from None
    plain = all(name in ("card", "model") and not (spec or how) for name, spec, how in fields)
    there = parts.scheme in ("http", "https") and parts.netloc
    if not there or not plain or "{" in parts.netloc or "{card}" not in text:
        raise BadRequest("embed-bad-link", asked=text)
    return text


def _colour(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if name not in COLOURS or not _COLOUR.fullmatch(value):
        raise BadRequest("embed-bad-colour", asked=text, allowed=", ".join(COLOURS))
    return name, value.lower()


def _logo(path: Path) -> tuple[bytes, str]:
    kind = _PICTURES.get(path.suffix.lower())
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_LOGO_BYTES + 1)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadFile("planfile-not-read", path=path, why=why) from error
    if kind is None or len(content) > MAX_LOGO_BYTES:
        allowed = ", ".join(_PICTURES)
        raise BadFile("embed-bad-logo", path=path, allowed=allowed, most=MAX_LOGO_BYTES)
    return content, kind


def routes(answers: Answers, templates: Any) -> APIRouter:
    """The paths of the frame; none where the server was not told of a host."""
    frame, embed = APIRouter(), answers.options.embed
    if embed is None:
        return frame

    @frame.get("/embed")
    async def page(request: Request) -> Response:
        """The frame: a model and a size to choose, the host's cards with what they take."""
        found = await _shown(answers, embed, request)
        error = found.pop("error")
        status = HTTPStatus.OK if error is None else status_of(error)
        return HTMLResponse(templates.fill("embed.html", request, **found), status)

    @frame.get("/embed/colours.css")
    async def colours() -> Response:
        return Response(stylesheet(embed), media_type="text/css")

    @frame.get("/embed/logo")
    async def logo() -> Response:
        if embed.logo is None:
            raise Refused(HTTPStatus.NOT_FOUND, "web-no-page", path="/embed/logo")
        content, kind = embed.logo
        return Response(content, media_type=kind)

    return frame


async def _shown(answers: Answers, embed: Embed, request: Request) -> dict[str, Any]:
    """What the frame shows for its address."""
    asked = {name: value[:200] for name, value in request.query_params.items()}
    shipped = answers.shipped()
    order = sorted(api.models(), key=lambda entry: (entry.is_video, entry.title.lower()))
    entries = {entry.id: entry for entry in order if entry.id in shipped}
    entry = entries.get(asked.get("model", "")) or entries[DEFAULT_MODEL]
    sizes = await answers.presets(entry)
    preset = next((each for each in sizes if each.name == asked.get("size")), sizes[0])
    lines: list[embed_view.Line] = []
    pending, error = False, None
    try:
        cards = (await answers.own_cards())[:MAX_CARDS]
        if not cards:
            raise BadRequest("embed-needs-offers")
        question = PlanQuestion(request=preset.request, cards=cards)
        made = await answers.plan(question, own=True, within_s=_SOON_S)
        lines = embed_view.lines(made.value, lambda card: _target(embed, entry, card))
    except CardfitError as refused:
        pending = refused.code in ("web-takes-longer", "web-busy")
        error = None if pending else refused
    lang = asked.get("lang")
    return {
        "entries": list(entries.values()),
        "chosen": entry.id,
        "sizes": sizes,
        "size": preset.name,
        "lines": [(line, _choice(preset, line)) for line in lines],
        "origins": " ".join(embed.origins),
        "logo": embed.logo is not None,
        "pending": pending,
        "error": error,
        "trouble": "" if error is None else str(error),
        "frame_lang": lang if lang in LANGUAGES else "",
        "about": say("embed-about"),
    }


def _target(embed: Embed, entry: Model, card: str) -> str:
    """Where the choice of a card leads; empty where the host gave no link."""
    if embed.link is None:
        return ""
    return embed.link.format(card=quote(card, safe=""), model=quote(entry.id, safe=""))


def _choice(preset: Preset, line: embed_view.Line) -> str:
    """What the host's page is told when somebody chooses."""
    request = preset.request.model_dump(mode="json", exclude_unset=True)
    return json.dumps(
        {"request": request, "card": line.id, "verdict": line.word, "settings": line.given}
    )


def stylesheet(embed: Embed) -> str:
    """The host's colours over those of the style sheet, and writing on its accent that can be read."""
    rules = [f"--{name}: {value};" for name, value in embed.colours]
    accent = dict(embed.colours).get("accent")
    if accent is not None:
        rules.append(f"--on-accent: {_readable(accent)};")
    return f":root {{ color-scheme: light; {' '.join(rules)} }}\n" if rules else ""


def _readable(colour: str) -> str:
    """Black or white, whichever stands out more, by the relative luminance of WCAG.

    >>> _readable("#ffd400"), _readable("#3346c4")
    ('#000', '#fff')
    """
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "#fff"
