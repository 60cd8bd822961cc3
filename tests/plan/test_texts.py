"""Every sentence of the room is said somewhere, and everything that is said has its sentence."""

from __future__ import annotations

import re
from pathlib import Path

import cardfit
from cardfit.messages.plan import TEXTS

HOUSE = Path(cardfit.__file__).parent
SOURCES = [*(HOUSE / "plan").glob("*.py"), HOUSE / "api.py"]


def test_codes_and_sentences_match() -> None:
    text = "\n".join(source.read_text(encoding="utf-8") for source in SOURCES)
    said = set(re.findall(r'"(plan-[a-z0-9_-]+)"', text))
    assert said <= set(TEXTS)
    # f"plan-offload-{...}" and f"plan-{verdict}-would" make their codes from values
    made = {"plan-fits-would", "plan-tight-would"}
    stems = tuple(re.findall(r'f"(plan-[a-z0-9-]+-)\{', text))
    mine = {code for code in TEXTS if code.startswith("plan-")}
    unsaid = {code for code in mine if code not in said | made and not code.startswith(stems)}
    assert unsaid == set()
