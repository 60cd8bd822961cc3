"""The command `schema`: the JSON Schema of what cardfit reads or prints.

In: a name. Out: an exit code. The docstring is the help that a person reads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from cardfit.messages import say

if TYPE_CHECKING:
    from pydantic import BaseModel

READ = frozenset({"planfile", "requests", "budget", "sweepfile", "request", "settings"})
PLACES = {
    "planfile": "cardfit.request:PlanFile",
    "request": "cardfit.request:Request",
    "settings": "cardfit.request:Settings",
    "answer": "cardfit.plan.answer:Answer",
    "matrix": "cardfit.plan.matrix:Matrix",
    "accuracy": "cardfit.accuracy.score:Accuracy",
    "autopsy": "cardfit.autopsy.result:Autopsy",
    "requests": "cardfit.request.mix:RequestsFile",
    "sequence": "cardfit.plan.sequence:SequenceAnswer",
    "rent": "cardfit.plan.rent_answer:Rent",
    "plans": "cardfit.plan.together:Together",
    "largest": "cardfit.plan.largest:Largest",
    "budget": "cardfit.request.budget:Budget",
    "check": "cardfit.plan.check:Check",
    "diff": "cardfit.plan.diff:Diff",
    "readme": "cardfit.plan.readme:Readme",
    "record": "cardfit.records.models:Record",
    "sweepfile": "cardfit.measure.sweep_file:SweepFile",
    "sweep": "cardfit.measure.sweep:Sweep",
    "choice": "cardfit.measure.choose:Choice",
    "calibration": "cardfit.predict.calibration:Calibration",
    "probe": "cardfit.measure.probe:Probe",
    "compare": "cardfit.quality.result:Comparison",
    "decode": "cardfit.measure.decode:Decodes",
    "export": "cardfit.media.export:Exported",
    "codecs": "cardfit.media.codecs:Codecs",
}


def schema(
    name: Annotated[
        Literal[
            "planfile",
            "request",
            "settings",
            "answer",
            "matrix",
            "accuracy",
            "autopsy",
            "requests",
            "sequence",
            "rent",
            "plans",
            "largest",
            "budget",
            "check",
            "diff",
            "readme",
            "record",
            "sweepfile",
            "sweep",
            "choice",
            "calibration",
            "probe",
            "compare",
            "decode",
            "export",
            "codecs",
        ],
        Parameter(help=say("help-schema")),
    ] = "planfile",
    /,
) -> int:
    """The JSON Schema of what cardfit reads (planfile, requests, budget, sweepfile, request, settings) or prints.

    Try:

    cardfit schema answer
    """
    import json

    from cardfit.report import out

    module, _, kind = PLACES[name].partition(":")
    known: type[BaseModel] = getattr(import_module(module), kind)
    mode: Literal["serialization", "validation"] = "validation" if name in READ else "serialization"
    out.write(json.dumps(known.model_json_schema(mode=mode), indent=2, ensure_ascii=False))
    return 0
