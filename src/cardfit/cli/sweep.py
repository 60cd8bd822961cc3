"""The command `sweep`: measure one request over settings.

In: a file or a model, and axes. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from cardfit.cli.flags import RequestFlags, SettingsFlags, asked
from cardfit.errors import BadFile, BadRequest
from cardfit.messages import say

_SPREAD = Parameter(name="*")  # the fields of the class are the flags
_NONE_REQUEST, _NONE_SETTINGS = RequestFlags(), SettingsFlags()


def sweep(
    model: Annotated[str, Parameter(help=say("help-sweep-file"))],
    /,
    *,
    over: Annotated[list[str] | None, Parameter(help=say("help-sweep-over"), negative=())] = None,
    auto: Annotated[bool, Parameter(help=say("help-sweep-auto"), negative=())] = False,
    name: Annotated[str | None, Parameter(help=say("help-sweep-name"))] = None,
    request: Annotated[RequestFlags, _SPREAD] = _NONE_REQUEST,
    settings: Annotated[SettingsFlags, _SPREAD] = _NONE_SETTINGS,
    weights: Annotated[str, Parameter(help=say("help-run-weights"))] = "random",
    configs: Annotated[Path | None, Parameter(help=say("help-run-configs"))] = None,
    device: Annotated[str, Parameter(help=say("help-run-device"))] = "auto",
    repeats: Annotated[int, Parameter(help=say("help-run-repeats"))] = 1,
    timeout: Annotated[float | None, Parameter(help=say("help-run-timeout"))] = None,
    reference: Annotated[str | None, Parameter(help=say("help-sweep-reference"))] = None,
    min_ssim: Annotated[float | None, Parameter(help=say("help-choose-min-ssim"))] = None,
    max_seam: Annotated[float | None, Parameter(help=say("help-choose-max-seam"))] = None,
    ray: Annotated[str | None, Parameter(help=say("help-sweep-ray"))] = None,
    in_flight: Annotated[int | None, Parameter(help=say("help-sweep-in-flight"))] = None,
    card: Annotated[list[str] | None, Parameter(help=say("help-sweep-card"), negative=())] = None,
    chart: Annotated[Path | None, Parameter(help=say("help-sweep-chart"))] = None,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Measure one request over settings, each run in its own process; asked again it goes on where it ended.

    Try:

    cardfit sweep flux.1-dev --over offload=none,model --over vae_tiling=false,true

    cardfit sweep sweep.yaml --weights ./FLUX.1-dev --chart sweep.html

    cardfit sweep flux.1-dev --over vae_tiling=false,true --reference vae_tiling=false --min-ssim 0.97

    cardfit sweep wan2.1-t2v-14b --auto --timeout 1800

    cardfit sweep sweep.yaml --ray auto --card rtx-4090 --card l40s

    cardfit sweep flux.1-dev --over seed=1,2,3,4 --ray local --device fake
    """
    from cardfit import verbs
    from cardfit.measure.choose import Limits
    from cardfit.measure.here import usable_bytes
    from cardfit.measure.sweep_file import SweepFile
    from cardfit.report import drawn, dump, out
    from cardfit.report import sweep as page
    from cardfit.report.live import Live, LiveFleet

    if chart is not None and chart.suffix.lower() not in drawn.ENDINGS:
        raise BadRequest("rent-bad-chart", asked=str(chart))
    limits = Limits(min_ssim=min_ssim, max_seam=max_seam)
    limits.check()
    if limits != Limits() and reference is None:
        raise BadRequest("sweep-limits-need-reference")
    axes = _axes(over or ())
    file = _asked(model, request, settings)
    if isinstance(file, SweepFile) and not (axes or file.sweep or auto):
        raise BadRequest("sweep-nothing")

    def remark(text: str) -> None:
        out.remarks([text])

    with out.progress(quiet=json) as progress:
        live = LiveFleet(progress)
        found = verbs.sweep(
            file,
            axes=axes,
            auto=auto,
            name=name,
            weights=weights if weights == "random" else Path(weights),
            configs=configs,
            device=device,
            repeats=repeats,
            timeout_s=timeout,
            store=store,
            reference=reference,
            progress=progress,
            watcher=None
            if ray is not None
            else Live(progress, remark, usable_bytes=usable_bytes(device)),
            ray=ray,
            in_flight=in_flight,
            cards=tuple(card or ()),
            said=live.said,
            watch=None if progress is None else live.watch,
            note=lambda note: remark(note.text),
        )
    out.write(dump.one(found) if json else page.lines(found, out.style_of(), limits))
    if chart is not None:
        page.write(found, chart)
        out.remarks([say("saved", {"file": chart})])
    return (
        0
        if any(row.outcome == "ok" and limits.broken_by(row.quality) is None for row in found.rows)
        else 1
    )


def _asked(model: str, request: RequestFlags, settings: SettingsFlags) -> Any:
    """A sweep's file with the given flags on top, or a model with its flags."""
    from cardfit.measure.sweep_file import SweepFile, read_sweep_file
    from cardfit.request.read import validate_request, validate_settings

    if not model.endswith((".yaml", ".yml")):
        wanted, knobs = asked(model, request, settings)
        return SweepFile(request=wanted, settings=knobs)
    if not Path(model).is_file():
        raise BadFile("planfile-not-read", path=model, why="No such file or directory")
    file = read_sweep_file(Path(model))
    more, knobs = asked("-", request, settings)
    own = more.model_dump(exclude_unset=True)
    del own["model"]
    return file.model_copy(
        update={
            "request": validate_request(file.request.model_dump(exclude_unset=True) | own),
            "settings": validate_settings(
                file.settings.model_dump(exclude_unset=True) | knobs.model_dump(exclude_unset=True)
            ),
        }
    )


def _axes(tokens: Any) -> dict[str, list[Any]]:
    """Fields and their values from ``FIELD=VALUE,VALUE``; a value is read as YAML reads a word. Raises BadRequest.

    >>> _axes(["vae_tiling=false,true", "--batch=1,2", "offload=none,model"])
    {'vae_tiling': [False, True], 'batch': [1, 2], 'offload': ['none', 'model']}
    """
    import yaml

    found: dict[str, list[Any]] = {}
    for token in tokens:
        field, equals, words = token.partition("=")
        field = field.lstrip("-").replace("-", "_")
        parts = [word.strip() for word in words.split(",") if word.strip()]
        if not equals or not field or not parts or any(len(word) > 40 for word in parts):
            raise BadRequest("sweep-bad-axis", asked=token)
        try:
            values = [yaml.safe_load(word) for word in parts]
        except yaml.YAMLError:
            raise BadRequest("sweep-bad-axis", asked=token) from None
        if any(isinstance(value, (dict, list)) for value in values):
            raise BadRequest("sweep-bad-axis", asked=token)
        found[field] = values
    return found
