"""The flags of `plan` for the time and prices around the runs, one for each field of `Session`.

In: words. Out: a `Session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cardfit.cli import quotes
from cardfit.plan.bill import FLAGS, Session, session_of

if TYPE_CHECKING:

    class SessionFlags:
        """Flags of the session."""

else:
    SessionFlags = quotes.flags_of("SessionFlags", FLAGS, __name__)

NO_SESSION = SessionFlags()


def named(flags: SessionFlags) -> dict[str, object]:
    """What was typed, by flag."""
    return {FLAGS[name]: text for name, text in vars(flags).items()}


def session_from(flags: SessionFlags) -> Session | None:
    """What was stated; None where nothing was. Raises BadRequest naming the flag that cannot be read."""
    given = quotes.fields_of(flags, FLAGS)
    return session_of(given) if given else None
