"""The entry point: from words to an exit code. Exit codes live here and nowhere else.

0 the question was answered, 1 nothing asked fits (``--check``), 2 the question cannot be answered as asked, 130
interrupted. An error of cardfit is one sentence on stderr, never a traceback.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from cardfit import __version__
from cardfit.errors import BadRequest, CardfitError
from cardfit.messages import LANGUAGES, language, say, speaking

BAD_INPUT, INTERRUPTED = 2, 130
_ROOM = "cardfit.cli"
# Where each command stands; only the one that is typed is loaded.
COMMANDS: dict[str, str] = {
    "plan": f"{_ROOM}.commands:plan",
    "matrix": f"{_ROOM}.commands:matrix",
    "trace": f"{_ROOM}.commands:trace",
    "front": f"{_ROOM}.front:front",
    "largest": f"{_ROOM}.largest:largest",
    "models": f"{_ROOM}.models:models",
    "cards": f"{_ROOM}.commands:cards",
    "offers": f"{_ROOM}.commands:offers",
    "rent": f"{_ROOM}.rent:rent",
    "run": f"{_ROOM}.run:run",
    "sweep": f"{_ROOM}.sweep:sweep",
    "choose": f"{_ROOM}.choose:choose",
    "calibrate": f"{_ROOM}.calibrate:calibrate",
    "records": f"{_ROOM}.records:records",
    "probe": f"{_ROOM}.probe:probe",
    "accuracy": f"{_ROOM}.accuracy:accuracy",
    "autopsy": f"{_ROOM}.autopsy:autopsy",
    "check": f"{_ROOM}.check:check",
    "assign": f"{_ROOM}.assign:assign",
    "diff": f"{_ROOM}.diff:diff",
    "readme": f"{_ROOM}.readme:readme",
    "compare": f"{_ROOM}.compare:compare",
    "decode": f"{_ROOM}.decode:decode",
    "export": f"{_ROOM}.export:export",
    "codecs": f"{_ROOM}.codecs:codecs",
    "comfy": f"{_ROOM}.comfy:comfy",
    "read": f"{_ROOM}.read:read",
    "report": f"{_ROOM}.report:report",
    "site": f"{_ROOM}.site:site",
    "serve": f"{_ROOM}.serve:serve",
    "schema": f"{_ROOM}.schema:schema",
}


def main() -> NoReturn:
    """Run the command line of this process and leave with its exit code."""
    # a plan makes many small tuples and few cycles: looking for those at every 700 objects takes a sixth of it
    gc.set_threshold(100_000, 20, 20)
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    from cardfit.report import out

    try:
        lang, rest = _language(words)
        with speaking(lang or language()):
            return _answered(rest)
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


def _language(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The language that ``--lang`` names anywhere among ``words``, and the words without it. Raises BadRequest.

    >>> _language(["plan", "svd", "--lang", "ko"]), _language(["--lang=nl", "cards"])
    (('ko', ['plan', 'svd']), ('nl', ['cards']))
    """
    found, rest = None, list[str]()
    left = iter(words)
    for word in left:
        if word == "--" or rest[:1] == ["site"]:  # which writes in several
            rest += [word, *left]
        elif word == "--lang" or word.startswith("--lang="):
            found = next(left, "") if word == "--lang" else word.removeprefix("--lang=")
            if found not in LANGUAGES:
                raise BadRequest("bad-lang", asked=found, allowed=", ".join(LANGUAGES))
        else:
            rest.append(word)
    return found, rest


def _answered(words: list[str]) -> int:
    from cyclopts import App, CycloptsError

    from cardfit.cli import typed
    from cardfit.report import out

    app = App(
        name="cardfit",
        help=f"{say('help-cardfit')}\n\n{say('help-lang', {'allowed': ', '.join(LANGUAGES)})}",
        version=__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
    )
    typed_one = bool(words) and words[0] in COMMANDS
    for name, where in COMMANDS.items():  # the list of commands shows what each does
        app.command(where if typed_one else _loaded(where), name=name)
    token = typed.WORDS.set(tuple(words))
    try:
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = words[0] if typed_one else ""
        problem = " ".join(str(error).split())
        out.error(" ".join(say("bad-option", {"problem": problem, "command": command}).split()))
        return BAD_INPUT
    finally:
        typed.WORDS.reset(token)
    return result if isinstance(result, int) else 0


def _loaded(where: str) -> Callable[..., Any]:
    module, _, name = where.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
