"""The command `schema`: a name in, the JSON Schema of what is read or printed under it out."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import BaseModel

from cardfit.messages import say

# where each model stands; loaded when asked for
MODELS: dict[str, str] = {
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
    "front": "cardfit.plan.front:Front",
    "budget": "cardfit.request.budget:Budget",
    "check": "cardfit.plan.check:Check",
    "shots": "cardfit.fleet.shots:ShotsFile",
    "farm": "cardfit.fleet.farm:FarmFile",
    "assign": "cardfit.fleet.result:Assignment",
    "diff": "cardfit.plan.diff:Diff",
    "readme": "cardfit.plan.readme:Readme",
    "added": "cardfit.plan.added:Added",
    "record": "cardfit.records.models:Record",
    "copied": "cardfit.records.copying:Copied",
    "sweepfile": "cardfit.measure.sweep_file:SweepFile",
    "sweep": "cardfit.measure.sweep:Sweep",
    "choice": "cardfit.measure.choose:Choice",
    "calibration": "cardfit.predict.calibration:Calibration",
    "probe": "cardfit.measure.probe:Probe",
    "compare": "cardfit.quality.result:Comparison",
    "decode": "cardfit.measure.decode:Decodes",
    "export": "cardfit.media.export:Exported",
    "codecs": "cardfit.media.codecs:Codecs",
    "comfy": "cardfit.comfy.result:Reading",
    "comfy-plan": "cardfit.comfy.planning:WorkflowPlan",
    "script": "cardfit.script.result:ScriptReading",
    "script-plan": "cardfit.script.planning:ScriptPlan",
    "deployment": "cardfit.comfy.deploy:Deployment",
    "servercheck": "cardfit.comfy.check:Checked",
    "inventory": "cardfit.comfy.inventory:Inventory",
}
READ = frozenset(
    {"planfile", "requests", "budget", "shots", "farm", "sweepfile", "request", "settings"}
)


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
            "front",
            "budget",
            "check",
            "shots",
            "farm",
            "assign",
            "diff",
            "readme",
            "added",
            "record",
            "copied",
            "sweepfile",
            "sweep",
            "choice",
            "calibration",
            "probe",
            "compare",
            "decode",
            "export",
            "codecs",
            "comfy",
            "comfy-plan",
            "script",
            "script-plan",
            "deployment",
            "servercheck",
            "inventory",
        ],
        Parameter(help=say("help-schema")),
    ] = "planfile",
    /,
) -> int:
    """The JSON Schema of what cardfit reads (planfile, requests, budget, shots, farm, sweepfile ...) or prints.

    Try:

    cardfit schema answer
    """
    from cardfit.report import out

    module, _, kind = MODELS[name].partition(":")
    model: type[BaseModel] = getattr(import_module(module), kind)
    mode: Literal["serialization", "validation"] = "validation" if name in READ else "serialization"
    out.write(json.dumps(model.model_json_schema(mode=mode), indent=2, ensure_ascii=False))
    return 0
