"""The command `records`: list, show, export, import, prune and share what was measured.

In: an action and filters. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from cardfit.cli.sequence import refuse
from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say

if TYPE_CHECKING:
    from cardfit.records.copying import Copied

Action = Literal["list", "show", "export", "import", "prune", "push", "pull", "merge", "grant-read"]
_PAGE = 200  # records that a page of them shows when nothing else is asked
_DAYS_PER_MONTH = 365 / 12


def records(
    action: Annotated[Action, Parameter(help=say("help-records-action"))] = "list",
    what: Annotated[str | None, Parameter(help=say("help-records-what"))] = None,
    /,
    *,
    model: Annotated[str | None, Parameter(help=say("help-records-model"))] = None,
    card: Annotated[str | None, Parameter(help=say("help-records-card"))] = None,
    outcome: Annotated[str | None, Parameter(help=say("help-records-outcome"))] = None,
    sweep: Annotated[str | None, Parameter(help=say("help-records-sweep"))] = None,
    last: Annotated[
        int | None,
        Parameter(
            name=["--last", "--limit"],
            help=say("help-records-last"),
            validator=validators.Number(gte=1),
        ),
    ] = None,
    older_than: Annotated[str | None, Parameter(help=say("help-records-older"))] = None,
    yes: Annotated[
        bool, Parameter(help=say("help-records-yes"), negative=(), show_default=False)
    ] = False,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """What was measured: list it, show one record, export without prompts, import, prune, share with other stores.

    Try:

    cardfit records list --model flux.1-dev --last 10

    cardfit records show 20261203t1

    cardfit records export mine.json --card rtx-4090

    cardfit records prune --older-than 30d --outcome error

    cardfit records push postgresql+psycopg://anna@db/cardfit

    cardfit records merge /mnt/share/records

    cardfit records grant-read cardfit_web --store postgresql+psycopg://owner@db/cardfit
    """
    filters: dict[str, Any] = {
        "model": model,
        "card": card,
        "outcome": outcome,
        "sweep": sweep,
        "last": last,
    }
    if action != "prune":
        refuse({"--older-than": older_than, "--yes": yes}, f"records {action}")
    if action == "list":
        return _list(store, filters, json)
    if action == "prune":
        refuse(
            {"--model": model, "--card": card, "--sweep": sweep, "--last": last}, "records prune"
        )
        return _prune(store, older_than, outcome, yes, json)
    if what is None:
        raise BadRequest(f"records-{action}-what")
    if action == "show":
        return _show(what, store, json)
    if action == "export":
        return _export(Path(what), store, filters, force)
    if action == "grant-read":
        return _grant(what, store)
    return _share(action, what, store, filters, json)


def _list(store: str | None, filters: dict[str, Any], json: bool) -> int:
    from cardfit import api
    from cardfit.report import dump, out
    from cardfit.report import run as page

    unread: list[BadFile] = []
    if json:
        out.write(dump.many("records", api.records(store, **filters, unread=unread)))
        out.remarks(str(error) for error in unread)
        return 0
    asked = filters if filters["last"] else {**filters, "last": _PAGE + 1}
    found = api.records(store, **asked, unread=unread, short=True)
    cut = not filters["last"] and len(found) + len(unread) > _PAGE
    out.write(page.table(found[-_PAGE:] if cut else found, out.style_of()))
    more = [say("records-cut", {"count": _PAGE})] if cut else []
    out.remarks([*(str(error) for error in unread), *more])
    return 0


def _show(what: str, store: str | None, json: bool) -> int:
    from cardfit.records.verbs import find
    from cardfit.report import dump, out
    from cardfit.report import run as page

    found = find(what, store)
    style = out.style_of()
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(page.notes(found, style))
    return 0


def _export(file: Path, store: str | None, filters: dict[str, Any], force: bool) -> int:
    from cardfit import api
    from cardfit.records.copying import export
    from cardfit.records.files import put
    from cardfit.report import out

    if file.exists() and not force:
        raise BadFile("planfile-exists", path=str(file))
    found = api.records(store, **filters)
    put(file, export(found).encode())
    out.write([say("records-exported", {"count": len(found), "file": str(file)})])
    return 0


def _share(action: str, what: str, store: str | None, filters: dict[str, Any], json: bool) -> int:
    from cardfit.measure import sharing
    from cardfit.report import copied as page
    from cardfit.report import dump, out

    if action == "import":
        refuse({f"--{name}": value for name, value in filters.items()}, "records import")
        found = sharing.bring_in(Path(what), store)
    else:
        ways: dict[str, Callable[..., Copied]] = {
            "push": sharing.push,
            "pull": sharing.pull,
            "merge": sharing.merge,
        }
        found = ways[action](what, store=store, **filters)
    out.write(dump.one(found) if json else page.lines(found))
    if not json:
        out.remarks(page.refused(found))
    return 1 if found.refused else 0


def _grant(role: str, store: str | None) -> int:
    from cardfit.measure import sharing
    from cardfit.report import out

    out.write(
        [say("records-granted", {"role": role, "store": sharing.grant_read(role, store=store)})]
    )
    return 0


def _prune(store: str | None, older: str | None, outcome: str | None, yes: bool, json: bool) -> int:
    from cardfit.records.verbs import prune
    from cardfit.report import dump, out
    from cardfit.report import run as page
    from cardfit.units import parse_months

    days = None
    if older is not None:
        try:
            days = parse_months(older) * _DAYS_PER_MONTH
        except ValueError:
            raise BadRequest("records-bad-age", asked=older) from None
    found = prune(store, older_than_days=days, outcome=outcome, dry=not yes)
    if json:
        out.write(dump.many("records", found))
        return 0
    if found:
        out.write(page.table(found, out.style_of()))
    out.write([say("records-pruned" if yes else "records-would-prune", {"count": len(found)})])
    return 0
