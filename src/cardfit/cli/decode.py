"""The command `decode`: the same latents with several VAE settings, compared.

In: a record or a latents file, settings in words. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cardfit.messages import say


def decode(
    source: Annotated[str, Parameter(help=say("help-decode-source"))],
    /,
    *,
    vae: Annotated[list[str] | None, Parameter(help=say("help-decode-vae"), negative=())] = None,
    model: Annotated[str | None, Parameter(help=say("help-decode-model"))] = None,
    weights: Annotated[str | None, Parameter(help=say("help-run-weights"))] = None,
    device: Annotated[str, Parameter(help=say("help-run-device"))] = "auto",
    reference_device: Annotated[
        str | None, Parameter(help=say("help-decode-reference-device"))
    ] = None,
    repeats: Annotated[int, Parameter(help=say("help-run-repeats"))] = 1,
    timeout: Annotated[float | None, Parameter(help=say("help-run-timeout"))] = None,
    metric: Annotated[
        list[str] | None, Parameter(help=say("help-compare-metric"), negative=())
    ] = None,
    report: Annotated[
        Path | None, Parameter(name=("--report", "-o"), help=say("help-compare-report"))
    ] = None,
    force: Annotated[
        bool, Parameter(help=say("help-force"), negative=(), show_default=False)
    ] = False,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Decode saved latents with several VAE settings, each in its own process, and compare with the valid reference.

    Try:

    cardfit decode 20261203t1 --weights ./sdxl --vae tiled --vae tile=512,overlap=64 --report report/

    cardfit decode latents-000.safetensors --model wan2.1-t2v-14b --weights ./wan --vae tiled --reference-device cpu
    """
    from cardfit import verbs
    from cardfit.report import compare_page, dump, out
    from cardfit.report import decode as page

    if report is not None:
        compare_page.check(report, force)
    with out.progress(quiet=json) as progress:
        found = verbs.decode(
            source,
            tuple(vae or ()),
            model=model,
            weights=None if weights in (None, "random") else Path(weights),
            device=device,
            reference_device=reference_device,
            repeats=repeats,
            timeout_s=timeout,
            also=metric or (),
            store=store,
            progress=progress,
        )
    if report is not None:
        out.error(say("quality-report-at", {"file": page.write(found, report)}))
    style = out.style_of()
    if json:
        out.write(dump.one(found))
    else:
        out.write(page.lines(found, style))
        out.remarks(page.notes(found, style))
    return 0 if all(row.outcome == "ok" for row in found.rows) else 1
