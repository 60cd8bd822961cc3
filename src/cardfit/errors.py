"""The error tree and the notes that travel in results.

    CardfitError
    +-- InputError            exit 2: the question cannot be answered as asked
    |   +-- UnknownModel
    |   +-- UnknownCard
    |   +-- BadRequest        a size, frame count or setting the model cannot take
    |   +-- BadFile           a file that cannot be read as what it should be
    |   +-- MissingExtra      an optional part of cardfit is not installed
    +-- DryRunFailed          the pipeline's own code raised during the dry run
    +-- ServerFailed          a ComfyUI server is away, or does not answer as one

An error carries a message code and its arguments; its text says what was asked, what was found, what is allowed and
what to do next (`cardfit.messages`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cardfit.messages import say


class CardfitError(Exception):
    """Base of all errors that cardfit raises on purpose; ``code`` and ``args_`` identify the sentence."""

    def __init__(self, code: str, **args: object) -> None:
        self.code = code
        self.args_ = args
        super().__init__(say(code, args))


class InputError(CardfitError):
    """The question cannot be answered as asked."""


class UnknownModel(InputError):
    """No library entry has that name or alias."""


class UnknownCard(InputError):
    """No card has that id."""


class BadRequest(InputError):
    """A size, frame count or setting that the model cannot take."""


class BadFile(InputError):
    """A file that cannot be read as what it should be."""


class MissingExtra(InputError):
    """An optional part of cardfit is not installed."""


class DryRunFailed(CardfitError):
    """The pipeline's own code raised while it was run without weights."""


class ServerFailed(CardfitError):
    """A ComfyUI server could not be reached, or did not answer as one."""


@dataclass(frozen=True, slots=True)
class Note:
    """A caution or remark in a result: a message code with its arguments."""

    code: str
    args: dict[str, object] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentence in the reader's language."""
        return say(self.code, self.args)
