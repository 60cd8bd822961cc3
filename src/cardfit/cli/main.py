"""The entry point: from words to an exit code. Exit codes live here and nowhere else.

0 the question was answered, 1 nothing asked fits (``--check``), 2 the question cannot be answered as asked, 130
interrupted. An error of cardfit is one sentence on stderr, never a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cardfit import __version__
from cardfit.errors import CardfitError
from cardfit.messages import say

BAD_INPUT, INTERRUPTED = 2, 130


def main() -> NoReturn:
    """Run the command line of this process and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    from cardfit.report import out

    try:
        return _answered(list(words))
    except CardfitError as error:
        out.error(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        out.error(say("interrupted"))
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        out.error(say("cannot-go-on", {"problem": error.strerror or str(error)}))
        return BAD_INPUT


def _answered(words: list[str]) -> int:
    from cyclopts import App, CycloptsError

    from cardfit.cli import typed
    from cardfit.cli.commands import COMMANDS
    from cardfit.report import out

    app = App(
        name="cardfit",
        help=say("help-cardfit"),
        version=__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
    )
    for command in COMMANDS:
        app.command(command)
    token = typed.WORDS.set(tuple(words))
    try:
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = words[0] if words and words[0] in set(app) else ""
        problem = " ".join(str(error).split())
        out.error(" ".join(say("bad-option", {"problem": problem, "command": command}).split()))
        return BAD_INPUT
    finally:
        typed.WORDS.reset(token)
    return result if isinstance(result, int) else 0
