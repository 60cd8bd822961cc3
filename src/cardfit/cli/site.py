"""The command `site`: the answers of many presets as pages for a static host.

In: a folder, models, languages and offers. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.errors import BadRequest
from cardfit.messages import LANGUAGES, language, say


def site(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help=say("help-site-output"))],
    models: Annotated[str | None, Parameter(help=say("help-site-models"))] = None,
    lang: Annotated[str | None, Parameter(help=say("help-site-lang"))] = None,
    cards_file: Annotated[Path | None, Parameter(help=say("help-cards-file"))] = None,
    offers_file: Annotated[Path | None, Parameter(help=say("help-offers-file"))] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
) -> int:
    """Pages for any static host, from the shipped traces: an index to choose from, a page for each model and size.

    Try:

    cardfit site -o public/ --models flux.1-dev,wan2.1-t2v-14b

    cardfit site -o public/ --offers-file mine.csv --lang ko,nl
    """
    from functools import partial

    from cardfit import api
    from cardfit.report import out
    from cardfit.report import site as pages
    from cardfit.trace import atlas
    from cardfit.trace.source import DRY_RUNS

    languages = tuple(dict.fromkeys(_words(lang) or [language()]))
    for each in languages:
        if each not in LANGUAGES:
            raise BadRequest("bad-lang", asked=each, allowed=", ".join(LANGUAGES))
    named = _words(models)
    entries = [api.model(each) for each in named] if models else list(api.models())
    shipped = atlas.models()
    for entry in entries:
        if named and entry.id not in shipped:
            raise BadRequest("site-no-traces", model=entry.id)
    pages.check(output, force)
    api.offers(cards_file=cards_file, offers_file=offers_file)  # what cannot be read is said now
    token = DRY_RUNS.set(False)
    try:
        with out.progress() as progress:
            made = pages.build(
                output,
                [entry for entry in entries if entry.id in shipped],
                languages,
                partial(api.plan, cards_file=cards_file, offers_file=offers_file),
                offers=say("site-shipped-offers") if offers_file is None else offers_file.name,
                force=force,
                progress=progress,
            )
    finally:
        DRY_RUNS.reset(token)
    out.remarks(note.text for note in made.skipped)
    out.error(say("site-written", {"pages": made.pages, "file": output / "index.html"}))
    return 0


def _words(text: str | None) -> list[str]:
    """Words with commas between them."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]
