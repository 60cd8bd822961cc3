"""A file that a visitor opens: a ComfyUI workflow, a picture or a plan file becomes a question, or questions to answer.

In: the bytes of a file with its name, and answers to what a workflow leaves open. Out: an `Opened`: requests as
addresses of the configurator, and one field for each value that the file does not say. Bytes are read, never a path;
nothing is kept. A video is not opened: reading one takes a decoder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from cardfit.comfy.files import raw_of
from cardfit.comfy.placement import WorkflowFacts
from cardfit.comfy.planning import facts_of, groups_of, notes_of, request_of
from cardfit.comfy.reader import default_for, read_workflow, value_of
from cardfit.comfy.result import Reading, WorkflowRequest
from cardfit.comfy.values import MAX_SIDE, Missing
from cardfit.errors import BadFile, BadRequest
from cardfit.library import load
from cardfit.messages import say
from cardfit.report import comfy as page
from cardfit.request.read import plan_file_of
from cardfit.web.questions import MAX_ANSWERS, MAX_NAME, to_query

ANSWER = "answer."
_YAML = (".yaml", ".yml")
_COUNTS = ("width", "height", "frames")


@dataclass(frozen=True, slots=True)
class Ask:
    """One value that the workflow does not say; ``field`` is its name in the form."""

    field: str
    node: str
    input: str
    why: str
    given: str
    usual: str
    count: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One request of the file: what it makes, where that is from, and the address that asks for it."""

    title: str
    what: tuple[str, ...]
    origins: tuple[str, ...]
    notes: tuple[str, ...]
    query: str


@dataclass(frozen=True, slots=True)
class Opened:
    """The file as read; ``clear`` where it is one request that the configurator holds whole."""

    name: str
    found: tuple[Found, ...]
    asks: tuple[Ask, ...] = ()
    notes: tuple[str, ...] = ()
    workflow: str = ""
    clear: bool = False


def file_name(given: str | None) -> str:
    """The name of a file as it is shown: its last part, in plain signs, not too long.

    >>> file_name("C:\\\\flows\\\\wan 2.json"), file_name(None)
    ('wan 2.json', 'file')
    """
    last = (given or "").replace("\\", "/").rpartition("/")[2]
    return "".join(sign for sign in last if sign.isprintable())[-MAX_NAME:] or "file"


def opened(content: bytes, name: str, answers: Mapping[str, str]) -> Opened:
    """What the file asks. Raises BadFile and BadRequest for what is none of the three, or cannot be."""
    head = content[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head:
        raise BadFile("planfile-empty", path=name)
    if name.lower().endswith(_YAML):
        return _plan_file(content, name)
    if head[:1] in (b"{", b"["):
        return _workflow(raw_of(content, name), name, answers)
    if b"\0" in content[:4096]:
        if not content.startswith((b"\x89PNG", b"RIFF")):
            raise BadFile("web-open-what", name=name)
        return _workflow(raw_of(content, name), name, answers)
    return _plan_file(content, name)


def answers_of(form: Mapping[str, str]) -> dict[str, str]:
    """The answers in the fields of a form, by ``node.input``."""
    given = {
        name.removeprefix(ANSWER): text.strip()
        for name, text in form.items()
        if name.startswith(ANSWER)
    }
    return {name: text[:200] for name, text in list(given.items())[:MAX_ANSWERS] if text}


def _plan_file(content: bytes, name: str) -> Opened:
    plan = plan_file_of(content, name)
    query = urlencode(to_query(plan.request, plan.settings))
    return Opened(name, (Found(plan.request.model, (), (), (), query),), clear=True)


def _workflow(raw: Any, name: str, answers: Mapping[str, str]) -> Opened:
    if not isinstance(raw, Mapping):
        raise BadFile("comfy-not-a-workflow", path=name)
    reading, asked = _settled(raw, name, answers)
    found = tuple(_found(reading, place) for place in range(len(reading.requests)))
    asks = tuple(_ask(reading, each, answers) for each in asked) if reading.missing else ()
    notes = [note.text for note in reading.notes]
    if reading.unknown_nodes:
        notes.append(say("comfy-unknown-nodes", {"names": ", ".join(reading.unknown_nodes)}))
    clear = len(found) == 1 and bool(found[0].query) and not (asks or notes or found[0].notes)
    text = json.dumps(raw, ensure_ascii=False, separators=(",", ":"))
    return Opened(name, found, asks, tuple(notes), text, clear)


def _settled(
    raw: Mapping[str, Any], name: str, answers: Mapping[str, str]
) -> tuple[Reading, list[Missing]]:
    """The reading with every answer that something asks for, and all that was asked on the way to it."""
    asked, given = dict[str, Missing](), dict[str, object]()
    while True:
        reading = read_workflow(raw, given, name=name)
        asked |= {_key(each): each for each in reading.missing}
        more = {
            key: value_of(answers[key])
            for key in asked
            if key in answers and key not in given and not _wrong(key, answers[key])
        }
        if not more:
            return reading, list(asked.values())
        given |= more


def _key(missing: Missing) -> str:
    return f"{missing.id}.{missing.input}"


def _wrong(key: str, text: str) -> str:
    """What is wrong with an answer, in words; empty where nothing is."""
    if key.rpartition(".")[2] not in _COUNTS:
        return ""
    value = value_of(text)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SIDE:
        return ""
    return say("web-open-count", {"found": text[:40], "most": MAX_SIDE})


def _ask(reading: Reading, missing: Missing, answers: Mapping[str, str]) -> Ask:
    key, usual = _key(missing), default_for(reading, missing)
    given = answers.get(key, "")
    return Ask(
        field=f"{ANSWER}{key}",
        node=missing.node,
        input=missing.input,
        why=missing.why,
        given=given,
        usual="" if usual is None else f"{usual:g}",
        count=missing.input in _COUNTS,
        error=_wrong(key, given) if given else "",
    )


def _found(reading: Reading, place: int) -> Found:
    request = reading.requests[place]
    named = request.model or ", ".join(request.seen) or "?"
    title = say("comfy-request", {"at": place + 1, "of": len(reading.requests), "model": named})
    query, notes = "", [note.text for note in request.notes]
    if request.model is not None and request.complete:
        query, more = _address(request)
        notes += more
    origins = tuple(page.origins(request))
    return Found(title, tuple(page.what(request)), origins, tuple(notes), query)


def _address(found: WorkflowRequest) -> tuple[str, list[str]]:
    """The address of the configurator for ``found``, and what it does not carry."""
    assert found.model is not None
    try:
        request, said = request_of(found, load(found.model))
    except BadRequest as refused:  # a size that no request has
        return "", [str(refused)]
    notes = [each.text for each in (*said, *notes_of(found)) if each.code not in _SILENT]
    if facts_of(found) != WorkflowFacts() or len(groups_of(found)) > 1:
        notes.append(say("web-open-less"))
    return urlencode(to_query(request, found.settings)), notes


_SILENT = frozenset({"comfy-save-latent"})  # advice that the answer gives too
