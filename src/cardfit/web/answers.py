"""The verbs as a server asks them: in threads, remembered, from the atlas alone unless dry runs are allowed.

In: a question. Out: the value that the verb returns with the JSON that its command prints. Files are those that were
named when the server was started, never a path from a question.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from cardfit import api, verbs
from cardfit.accuracy.score import Accuracy
from cardfit.accuracy.scored import scored
from cardfit.autopsy import Autopsy
from cardfit.cards import Card, find
from cardfit.comfy.planning import WorkflowPlan
from cardfit.comfy.reader import read_workflow
from cardfit.comfy.result import Reading
from cardfit.errors import BadFile, MissingExtra
from cardfit.library.lora_file import FILES_READ
from cardfit.library.models import Model
from cardfit.messages import language
from cardfit.offers import Offer
from cardfit.offers.market import ALONE
from cardfit.plan import cost
from cardfit.plan.answer import Answer
from cardfit.plan.largest import Largest
from cardfit.plan.rent_answer import Rent
from cardfit.plan.rent_question import RentQuestion
from cardfit.records.models import Record
from cardfit.report import dump
from cardfit.report import trace as trace_page
from cardfit.report.site import Preset, presets
from cardfit.request import Task
from cardfit.trace import atlas
from cardfit.trace.source import DRY_RUNS
from cardfit.trace.stream import Trace
from cardfit.web import kept
from cardfit.web.opened import Opened, file_name, opened
from cardfit.web.options import Options
from cardfit.web.problems import Refused
from cardfit.web.questions import (
    AutopsyQuestion,
    ComfyQuestion,
    LargestQuestion,
    PlanQuestion,
    TraceQuestion,
)
from cardfit.web.work import Work

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Made(Generic[_T]):
    """A value and the JSON that the command of the same name prints, plain and packed."""

    value: _T
    json: bytes
    zipped: bytes

    @classmethod
    def of(cls, value: _T, text: str) -> Made[_T]:
        """``value`` with its JSON."""
        plain = text.encode()
        return cls(value, plain, gzip.compress(plain, 5, mtime=0))


class Answers:
    """The verbs under their own names, and the files of this server."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.work = Work(options)
        self.background: object = None  # holds on to what was begun at the start
        self._files: dict[str, Any] = {
            "cards_file": options.cards_file,
            "offers_file": options.offers_file,
        }

    async def plan(
        self, question: PlanQuestion, *, own: bool = False, within_s: float | None = None
    ) -> Made[Answer]:
        """`cardfit.plan`, with ``own`` over the offers of this server's file alone.

        Raises Refused where it takes longer than ``within_s``, and as `plan` does.
        """
        asked = question.model_dump(exclude={"request", "settings"})

        def make() -> Made[Answer]:
            ALONE.set(own)  # the context is this call's own
            return _made(api.plan(question.request, question.settings, **asked, **self._files))

        key = f"{'own ' if own else ''}{question.key}"
        return await self._ask(key, make, within_s=within_s)

    async def own_cards(self) -> tuple[str, ...]:
        """The cards that this server's own file has offers for."""

        def make() -> tuple[str, ...]:
            found = api.offers(**self._files)
            return tuple(dict.fromkeys(offer.card for offer in found if offer.own))

        return await self._ask("own cards", make)

    def planned(self, question: PlanQuestion) -> bool:
        """Whether `plan` would answer from memory."""
        return self.work.known(_key(question.key))

    async def comfy(
        self, question: ComfyQuestion, file: bytes | None = None
    ) -> Made[Reading] | Made[WorkflowPlan]:
        """`cardfit comfy plan`; ``file`` stands in place of the question's workflow.

        Raises Refused with what is ``missing`` where the workflow leaves open what a plan needs.
        """
        name = file_name(question.name)
        asked = question.model_dump(exclude={"workflow", "name", "answers", "requests_only"})

        def make() -> Made[Reading] | Made[WorkflowPlan]:
            source = question.workflow if file is None else file
            reading = read_workflow(source, question.answers, name=name)
            if question.requests_only:
                return _made(reading)
            if any(not each.complete for each in reading.requests):
                raise _open(reading)
            return _made(verbs.comfy_plan(reading, **asked, **self._files))

        rest = question.model_dump_json(exclude={"workflow"})
        return await self._ask(f"comfy {_hash(question, file)} {rest}", make)

    async def opened(self, content: bytes, name: str, given: Mapping[str, str]) -> Opened:
        """What a visitor's file asks."""
        key = f"open {hashlib.sha256(content).hexdigest()} {name} {sorted(given.items())}"
        return await self._ask(key, lambda: opened(content, name, given), keep=False)

    async def trace(self, question: TraceQuestion) -> Made[Trace]:
        """`cardfit.trace`."""

        def make() -> Made[Trace]:
            found = api.trace(question.request, question.settings)
            text = dump.many("trace", trace_page.rows(found), **trace_page.facts(found))
            return Made.of(found, text)

        return await self._ask(question.key, make)

    async def largest(self, question: LargestQuestion) -> Made[Largest]:
        """`cardfit.largest`."""
        asked = question.model_dump(exclude={"request", "settings"})

        def make() -> Made[Largest]:
            return _made(verbs.largest(question.request, question.settings, **asked, **self._files))

        return await self._ask(question.key, make)

    async def autopsy(self, question: AutopsyQuestion) -> Made[Autopsy]:
        """`cardfit.autopsy`."""

        def make() -> Made[Autopsy]:
            return _made(
                api.autopsy(
                    question.text,
                    question.request,
                    question.settings,
                    card=question.card,
                    ram_bytes=question.ram_bytes,
                    os=question.os,
                    cards_file=self.options.cards_file,
                )
            )

        return await self._ask(question.key, make, keep=False)

    async def rent(self, question: RentQuestion) -> Made[Rent]:
        """`cardfit.rent`."""
        key = f"rent {question.model_dump_json()}"
        return await self._ask(key, lambda: _made(verbs.rent(question, **self._files)))

    async def models(self, task: Task | None = None) -> Made[tuple[Model, ...]]:
        """`cardfit.models`."""
        return await self._ask(f"models {task}", lambda: _listed("models", api.models(task=task)))

    async def model(self, name: str) -> Made[Model]:
        """`cardfit.model`."""
        return await self._ask(f"model {name}", lambda: _made(api.model(name)), keep=False)

    async def cards(self) -> Made[tuple[Card, ...]]:
        """`cardfit.cards`, with what a price buys of each."""

        def make() -> Made[tuple[Card, ...]]:
            listed = api.cards(cards_file=self.options.cards_file)
            worths = cost.worths(listed, api.offers(**self._files), date.today())
            text = dump.cards(listed, worths, cost.matters(worths, None), None)
            return Made.of(listed, text)

        return await self._ask("cards", make)

    async def card(self, name: str) -> Made[Card]:
        """One card of the catalog. Raises UnknownCard."""
        listed = (await self.cards()).value
        return _made(find({card.id: card for card in listed}, name))

    async def offers(self, card: str | None = None) -> Made[tuple[Offer, ...]]:
        """`cardfit.offers`."""

        def make() -> Made[tuple[Offer, ...]]:
            return _listed("offers", api.offers(card=card, **self._files))

        return await self._ask(f"offers {card}", make, keep=card is None)

    async def accuracy(self) -> Made[Accuracy]:
        """What `cardfit accuracy` said of the published rows for this release."""
        return await self._ask("accuracy", lambda: _made(scored()))

    async def records(self, **filters: Any) -> Made[tuple[Record, ...]]:
        """`cardfit.records`, without prompts, latents and logs."""

        def make() -> Made[tuple[Record, ...]]:
            found = api.records(self.options.store, **filters, unread=[])
            return _listed("records", tuple(record.without_inputs() for record in found))

        return await self._ask(f"records {filters}", make, keep=False)

    async def record(self, name: str) -> Made[Record]:
        """One record of the store, by the beginning of its id. Raises BadRequest."""
        found = await self._whole(name)
        return _made(found.without_inputs())

    async def pictures(self, name: str) -> tuple[int, ...]:
        """The places of the outputs that a record kept on this machine."""
        return kept.places(await self._whole(name))

    async def picture(self, name: str, place: int) -> bytes:
        """One of them as a PNG. Raises Refused, BadRequest."""
        record = await self._whole(name)
        key = f"picture {record.id} {place}"
        return await self._ask(key, lambda: kept.picture(record, place), keep=False)

    async def _whole(self, name: str) -> Record:
        from cardfit.records.opening import opened

        def make() -> Record:
            with opened(self.options.store) as store:
                return store.get(name)

        return await self._ask(f"record {name}", make, keep=False)

    async def presets(self, entry: Model) -> tuple[Preset, ...]:
        """The requests that a model with shipped traces was made for."""
        return await self._ask(f"presets {entry.id}", lambda: presets(entry))

    def shipped(self) -> frozenset[str]:
        """The models that this server can answer for; all of them where dry runs are allowed."""
        if self.options.dry_runs:
            return frozenset(entry.id for entry in api.models())
        return atlas.models()

    async def _ask(
        self,
        key: str,
        make: Callable[[], _T],
        *,
        keep: bool = True,
        within_s: float | None = None,
    ) -> _T:
        def made() -> _T:
            DRY_RUNS.set(self.options.dry_runs)  # the context is this call's own
            FILES_READ.set(False)
            try:
                return make()
            except MissingExtra as missing:
                raise _not_shipped(missing) from missing

        return await self.work.ask(_key(key), made, keep=keep, within_s=within_s)


def _key(question: str) -> str:
    """What an answer depends on beside its question: the reader's language, and the day, for the age of offers."""
    return f"{language()} {date.today()} {question}"


def _hash(question: ComfyQuestion, file: bytes | None) -> str:
    """The same for the same workflow. Raises BadFile for one that is nested too deeply to be written down."""
    if file is None:
        try:
            file = json.dumps(question.workflow, sort_keys=True).encode()
        except RecursionError as error:
            raise BadFile("comfy-nested", path=question.name) from error
    return hashlib.sha256(file).hexdigest()


def _open(reading: Reading) -> Refused:
    """What the workflow does not say, with the questions that would settle it."""
    count = len(reading.missing)
    found = Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "web-workflow-open", count=count)
    found.members["missing"] = [dump.plain(each) for each in reading.missing]
    return found


def _made(value: _T) -> Made[_T]:
    return Made.of(value, dump.one(value))


def _listed(kind: str, values: Any) -> Made[Any]:
    return Made.of(values, dump.many(kind, values))


def _not_shipped(missing: MissingExtra) -> MissingExtra | Refused:
    """A visitor cannot install anything on this server: what lies outside is said, and what answers it."""
    if missing.code != "atlas-gap":
        return missing
    model, field = missing.args_["model"], missing.args_["field"]
    code = "web-no-model" if field == "model" else "web-not-shipped"
    return Refused(HTTPStatus.UNPROCESSABLE_ENTITY, code, model=model, field=field)
