"""Autopsy: an error text or log in; its numbers, the stage, the cause and the cures out.

What is read stays text: nothing of it is run, imported or loaded. The room is handed the planner's memo and a card when
the request is known; it loads neither.
"""

from cardfit.autopsy.diagnose import Case, as_stated, card_like, diagnose, on_card, wants_plan
from cardfit.autopsy.pasted import Asked, Pasted, asked, pasted
from cardfit.autopsy.read import MAX_BYTES, Reading, read, text_of, text_of_file
from cardfit.autopsy.result import Autopsy, CauseName, Cure, Numbers, StageName

__all__ = [
    "MAX_BYTES",
    "Asked",
    "Autopsy",
    "Case",
    "CauseName",
    "Cure",
    "Numbers",
    "Pasted",
    "Reading",
    "StageName",
    "as_stated",
    "asked",
    "card_like",
    "diagnose",
    "on_card",
    "pasted",
    "read",
    "text_of",
    "text_of_file",
    "wants_plan",
]
