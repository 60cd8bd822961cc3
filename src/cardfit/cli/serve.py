"""The command `serve`: the pages and the REST API of one machine.

In: flags. Out: an exit code, when the server is stopped. The docstring is the help that a person reads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.errors import BadRequest, MissingExtra
from cardfit.messages import say

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16


def serve(
    *,
    host: Annotated[str, Parameter(help=say("help-serve-host"))] = LOOPBACK[0],
    port: Annotated[int, Parameter(help=say("help-serve-port"))] = 8642,
    token: Annotated[str | None, Parameter(help=say("help-serve-token"))] = None,
    allow_host: Annotated[
        list[str] | None, Parameter(help=say("help-serve-allow-host"), negative=())
    ] = None,
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    rate: Annotated[float, Parameter(help=say("help-serve-rate"))] = 20.0,
    allow_dry_runs: Annotated[
        bool, Parameter(help=say("help-serve-dry-runs"), negative=(), show_default=False)
    ] = False,
    embed_origin: Annotated[
        list[str] | None, Parameter(help=say("help-serve-embed-origin"), negative=())
    ] = None,
    embed_link: Annotated[str | None, Parameter(help=say("help-serve-embed-link"))] = None,
    embed_colour: Annotated[
        list[str] | None, Parameter(help=say("help-serve-embed-colour"), negative=())
    ] = None,
    embed_logo: Annotated[Path | None, Parameter(help=say("help-serve-embed-logo"))] = None,
) -> int:
    """The configurator in a browser and the same answers as a REST API, from the shipped traces.

    Try:

    cardfit serve

    cardfit serve --host 0.0.0.0 --token "$(openssl rand -hex 16)" --offers-file mine.csv

    cardfit serve --allow-host cards.example --offers-file mine.csv --embed-origin https://host.example
    """
    token = token or os.environ.get("CARDFIT_TOKEN") or None
    _check(host, port, token, rate)
    try:
        import uvicorn

        from cardfit.web.app import application
        from cardfit.web.embed import embed_of
        from cardfit.web.options import Options
    except ModuleNotFoundError as missing:
        raise MissingExtra("web-extra", package=missing.name) from missing
    from cardfit import api
    from cardfit.report import out

    api.offers(
        cards_file=cards_file, offers_file=offers_file
    )  # a file that cannot be read is said now
    here = host in LOOPBACK
    names = (*LOOPBACK, *(name.lower() for name in allow_host or ())) if here or allow_host else ()
    options = Options(
        token=token,
        names=names,
        cards_file=cards_file,
        offers_file=offers_file,
        store=store,
        embed=embed_of(embed_origin or (), embed_link, embed_colour or (), embed_logo, offers_file),
        dry_runs=allow_dry_runs,
        warm=True,
        per_second=rate,
    )
    shown = f"[{host}]" if ":" in host else host
    out.error(say("web-serving", {"address": f"http://{shown}:{port}"}))
    uvicorn.run(
        application(options),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        limit_concurrency=1000,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=3,
    )
    return 0


def _check(host: str, port: int, token: str | None, rate: float) -> None:
    """Raise BadRequest for a server that anybody could ask, and for figures that cannot be meant."""
    if host not in LOOPBACK and token is None:
        raise BadRequest("web-needs-token", host=host)
    if token is not None and (len(token) < _LEAST_TOKEN or not token.isascii()):
        raise BadRequest("web-short-token", least=_LEAST_TOKEN)
    if not 1 <= port <= 65535:
        raise BadRequest("web-bad-port", port=port)
    if not 0 <= rate < 1e6:
        raise BadRequest("web-bad-rate", rate=rate)
