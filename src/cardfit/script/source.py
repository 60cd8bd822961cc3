"""The text of a script as a syntax tree; nothing of it is imported or run.

In: a path. Out: an `ast.Module`. Size is limited, and whatever Python itself cannot parse is one `BadFile` that names
the line.
"""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from cardfit.errors import BadFile
from cardfit.request.read import read_text

MAX_BYTES = 1_000_000
"""Of the text. The longest script among the cases has a hundredth of it."""


def looks_like_script(name: str) -> bool:
    """Whether an argument names a Python file, by its ending.

    >>> looks_like_script("make.py"), looks_like_script("clip.json")
    (True, False)
    """
    return name.lower().endswith(".py")


def parsed(path: Path) -> ast.Module:
    """The syntax tree of the file at ``path``. Raises BadFile."""
    return tree_of(read_text(path, MAX_BYTES), str(path))


def tree_of(text: str, path: str) -> ast.Module:
    """The syntax tree of ``text``, which stands in ``path``. Raises BadFile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # what a script warns of ("\\d" in a text) is its own business
            return ast.parse(text)
    except SyntaxError as error:
        line = error.lineno or 0
        raise BadFile("script-not-python", path=path, line=line, why=error.msg) from error
    except (MemoryError, RecursionError) as error:
        raise BadFile("script-nested", path=path) from error
    except ValueError as error:  # a null byte
        raise BadFile("script-not-text", path=path, why=str(error)) from error
