"""cardfit: which GPU this exact diffusion pipeline needs, how it must be set and what it will cost.

The verbs of the command line under the same names: ``cardfit.plan(request, settings)`` and the rest. Everything is
loaded when it is first used, so that ``import cardfit`` costs nothing. ``accuracy``, ``autopsy``, ``plan``,
``trace``, ``records``, ``cards`` and ``offers`` are rooms of the house and verbs at once: the package can be imported
from and called.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cardfit.api import front, matrix, model, models, sequence
    from cardfit.comfy.check import check as comfy_check
    from cardfit.comfy.deploy import deploy as comfy_deploy
    from cardfit.comfy.inventory import inventory as comfy_inventory
    from cardfit.comfy.recording import record as comfy_record
    from cardfit.errors import CardfitError, Note
    from cardfit.plan.answer import Answer
    from cardfit.request import Request, Settings
    from cardfit.verbs import (
        add_model,
        assign,
        calibrate,
        check,
        choose,
        codecs,
        comfy_plan,
        comfy_read,
        compare,
        decode,
        diff,
        export,
        largest,
        near_misses,
        probe,
        read,
        readme,
        record,
        rent,
        run,
        script_plan,
        sweep,
        together,
        verify_readme,
    )

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "CardfitError",
    "Note",
    "Request",
    "Settings",
    "accuracy",
    "add_model",
    "assign",
    "autopsy",
    "calibrate",
    "cards",
    "check",
    "choose",
    "codecs",
    "comfy_check",
    "comfy_deploy",
    "comfy_inventory",
    "comfy_plan",
    "comfy_read",
    "comfy_record",
    "compare",
    "decode",
    "diff",
    "export",
    "front",
    "largest",
    "matrix",
    "model",
    "models",
    "near_misses",
    "offers",
    "plan",
    "probe",
    "read",
    "readme",
    "record",
    "records",
    "rent",
    "run",
    "script_plan",
    "sequence",
    "sweep",
    "together",
    "trace",
    "verify_readme",
]

_VERBS = (
    "add_model",
    "assign",
    "calibrate",
    "check",
    "choose",
    "codecs",
    "comfy_plan",
    "comfy_read",
    "compare",
    "decode",
    "diff",
    "export",
    "largest",
    "near_misses",
    "probe",
    "read",
    "readme",
    "record",
    "rent",
    "run",
    "script_plan",
    "sweep",
    "together",
    "verify_readme",
)
_HOMES = {
    "Answer": "cardfit.plan.answer",
    "CardfitError": "cardfit.errors",
    "Note": "cardfit.errors",
    "Request": "cardfit.request",
    "Settings": "cardfit.request",
    "front": "cardfit.api",
    "matrix": "cardfit.api",
    "model": "cardfit.api",
    "models": "cardfit.api",
    "sequence": "cardfit.api",
    **dict.fromkeys(_VERBS, "cardfit.verbs"),
}
# commands of two words: the function has the second word's name in its room
_COMFY = {
    "comfy_check": "check",
    "comfy_deploy": "deploy",
    "comfy_inventory": "inventory",
    "comfy_record": "recording",
}
_ROOM_VERBS = frozenset({"accuracy", "autopsy", "cards", "offers", "plan", "records", "trace"})


class _VerbRoom(ModuleType):
    """A room that is a verb too: calling it calls the function of the same name in `cardfit.api`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        verb = self.__name__.rpartition(".")[2]
        return getattr(import_module("cardfit.api"), verb)(*args, **kwargs)


class _House(ModuleType):
    """This package; it makes a room callable at the moment the import system hangs it in here."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _ROOM_VERBS and type(value) is ModuleType:
            value.__class__ = _VerbRoom
        super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    if name in _ROOM_VERBS:
        return import_module(f"cardfit.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _COMFY:
        return getattr(import_module(f"cardfit.comfy.{_COMFY[name]}"), name.removeprefix("comfy_"))
    raise AttributeError(f"module 'cardfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _House
