"""The command `run`: measure one request on this machine.

In: a model or a plan file, and flags. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cardfit.cli.flags import RequestFlags, SettingsFlags, asked
from cardfit.errors import BadRequest
from cardfit.messages import say

if TYPE_CHECKING:
    from cardfit.records.models import Record

_SPREAD = Parameter(name="*")  # the fields of the class are the flags
_NONE_REQUEST, _NONE_SETTINGS = RequestFlags(), SettingsFlags()
_DONE, _DID_NOT = 0, 1


def _switch(code: str, name: str | None = None) -> Any:
    return Parameter(name=name, help=say(code), negative=(), show_default=False)


def run(
    model: Annotated[str | None, Parameter(help=say("help-model"))] = None,
    /,
    *,
    request: Annotated[RequestFlags, _SPREAD] = _NONE_REQUEST,
    settings: Annotated[SettingsFlags, _SPREAD] = _NONE_SETTINGS,
    weights: Annotated[str, Parameter(help=say("help-run-weights"))] = "random",
    configs: Annotated[Path | None, Parameter(help=say("help-run-configs"))] = None,
    device: Annotated[str, Parameter(help=say("help-run-device"))] = "auto",
    repeats: Annotated[int, Parameter(help=say("help-run-repeats"))] = 1,
    memory: Annotated[bool | None, Parameter(help=say("help-run-memory"))] = None,
    timeout: Annotated[float | None, Parameter(help=say("help-run-timeout"))] = None,
    prompt: Annotated[str | None, Parameter(help=say("help-run-prompt"))] = None,
    negative_prompt: Annotated[str | None, Parameter(help=say("help-run-negative"))] = None,
    image: Annotated[list[Path] | None, Parameter(help=say("help-run-image"), negative=())] = None,
    video: Annotated[Path | None, Parameter(help=say("help-run-video"))] = None,
    keep_inputs: Annotated[bool, _switch("help-run-keep-inputs")] = False,
    keep_outputs: Annotated[bool, _switch("help-run-keep-outputs")] = False,
    resume: Annotated[str | None, Parameter(help=say("help-run-resume"))] = None,
    price: Annotated[float | None, Parameter(help=say("help-run-price"))] = None,
    store: Annotated[str | None, Parameter(help=say("help-store"))] = None,
    json: Annotated[bool, Parameter(name="--json", help=say("help-json"), negative=())] = False,
) -> int:
    """Measure one request on this machine: load, a first call, steady ones; memory, seconds and power of each stage.

    Try:

    cardfit run flux.1-dev --weights random --repeats 3

    cardfit run plan.yaml --weights ./FLUX.1-dev --vae-tiling

    cardfit run --resume 20261203t1 --vae-tiling
    """
    from cardfit import verbs
    from cardfit.measure.here import usable_bytes
    from cardfit.report import out
    from cardfit.report.live import Live

    if (model is None) == (resume is None):
        raise BadRequest("run-model-or-resume")
    with out.progress(quiet=json) as progress:
        live = Live(
            progress,
            lambda text: out.remarks([text]),
            usable_bytes=usable_bytes(device),
            price_per_hour=price,
            timeout_s=timeout,
        )
        more: dict[str, Any] = {"device": device, "repeats": repeats, "timeout_s": timeout}
        more |= {"store": store, "watcher": live, "keep_outputs": keep_outputs}
        if resume is not None:
            _, knobs = asked("-", request, settings)
            given = None if weights == "random" else Path(weights)
            record = verbs.run(None, knobs, resume=resume, weights=given, **more)
        else:
            assert model is not None
            wanted, knobs = asked(model, request, settings)
            record = verbs.run(
                wanted,
                knobs,
                weights=weights if weights == "random" else Path(weights),
                configs=configs,
                memory=memory,
                prompt=prompt,
                negative_prompt=negative_prompt,
                images=tuple(image or ()),
                video=video,
                keep_inputs=keep_inputs,
                progress=progress,
                **more,
            )
    return show(record, json)


def show(record: Record, json: bool) -> int:
    """Write a record, as JSON or as its page; the exit code says whether the run ended well."""
    from cardfit.report import dump, out
    from cardfit.report import run as page

    style = out.style_of()
    if json:
        out.write(dump.one(record))
    else:
        out.write(page.lines(record, style))
        out.remarks(page.notes(record, style))
    return _DONE if record.outcome.kind == "ok" else _DID_NOT
