"""The library: what each model is and what it can be asked for; no weights.

`load` finds an entry by any of its names, `rules.resolve` turns a request into an exact one, `build` (imported on its
own, since it needs torch) makes the modules.
"""

from cardfit.library.load import aliases, all_models, load, model_ids, resolve_name, suggest
from cardfit.library.models import (
    CfgFacts,
    ComponentSpec,
    Defaults,
    FrameRule,
    Model,
    Rules,
    Scheduler,
    SizeRule,
    VaeFacts,
)

__all__ = [
    "CfgFacts",
    "ComponentSpec",
    "Defaults",
    "FrameRule",
    "Model",
    "Rules",
    "Scheduler",
    "SizeRule",
    "VaeFacts",
    "aliases",
    "all_models",
    "load",
    "model_ids",
    "resolve_name",
    "suggest",
]
