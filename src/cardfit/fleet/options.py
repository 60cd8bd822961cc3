"""What one request may run on: a row of the plan for each kind of card in a farm, or for each card that is for rent.

In: kinds. Out: a maker that stands where `cardfit.plan.make.make` does, so that verdicts, settings and seconds are
those of `cardfit plan`; a request's trace and its replays are shared by all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cardfit.cards.card import Card
from cardfit.errors import Note
from cardfit.fleet.farm import Kind
from cardfit.library.load import load as load_model
from cardfit.plan.answer import CardRow, Download
from cardfit.plan.bill import Use
from cardfit.plan.knobs import Knobs
from cardfit.plan.make import NO_CARDS, NOTHING_AFTER, Facts, Progress, question_of
from cardfit.plan.post import After
from cardfit.plan.rows import Timer, row_for
from cardfit.plan.search import Estimates
from cardfit.plan.target import Target
from cardfit.plan.timer import timer as clock
from cardfit.plan.verdict import Host
from cardfit.predict.totals import Totals
from cardfit.request import ExactRequest, Settings


@dataclass(frozen=True, slots=True)
class Options:
    """A request after its rules, a row for each kind in their order, what was said of it, the fetching of its files."""

    request: ExactRequest
    versions: Mapping[str, str]
    rows: tuple[CardRow, ...]
    notes: tuple[Note, ...]
    download: Download | None


def options_on(kinds: Sequence[Kind]) -> Callable[..., Options]:
    """What makes the rows of ``kinds``, each with its own RAM, disk, system and measured rates."""

    def make(
        request: ExactRequest,
        given: Settings,
        targets: Sequence[Target],
        host: Host,
        knobs: Knobs,
        estimates: Estimates,
        facts: Facts,
        *,
        currency: str | None = None,
        use: Use | None = None,
        timer: Timer | None = None,
        after: After = NOTHING_AFTER,
        catalog: Mapping[str, Card] = NO_CARDS,
        progress: Progress | None = None,
    ) -> Options:
        use = use or Use()
        question, untraced = question_of(
            given,
            [kind.target for kind in kinds],
            host,
            knobs,
            estimates,
            facts,
            currency=currency,
            use=use,
            timer=timer,
            after=after.over,
        )
        work, rows = dict[int, Totals](), []
        for done, kind in enumerate(kinds):
            if progress is not None:
                progress(kind.target.name, done / len(kinds))
            own = replace(question, host=replace(kind.host, files_bytes=host.files_bytes))
            if kind.probed is not None:
                entry = load_model(facts.model.id)
                found = clock(entry, estimates, catalog, kind.probed, work)
                own = replace(own, timer=after.timer(found, catalog))
            rows.append(row_for(kind.target, own).row)
        return Options(
            request, facts.versions, tuple(rows), (*facts.notes, *untraced), use.download()
        )

    return make
