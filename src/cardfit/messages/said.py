"""A sentence as a value: what a result carries into JSON and onto a page.

In: a message code with its arguments. Out: a frozen pydantic model with the text in the reader's language.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from cardfit.messages import say


class Said(BaseModel):
    """A sentence by code, with its arguments and its text in the reader's language."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    args: dict[str, object]
    text: str

    @classmethod
    def of(cls, code: str, **args: object) -> Said:
        """The sentence for ``code``."""
        return cls(code=code, args=args, text=say(code, args))
