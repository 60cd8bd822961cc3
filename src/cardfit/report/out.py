"""The only place that writes: results on stdout, progress, notes and errors on stderr.

In: lines that a view made. Out: text on a stream, in the stream's own encoding; a sign that it does not have is
replaced, never an error. Progress is a transient line on a terminal and silence elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from cardfit.report.style import Style

Progress = Callable[[str, float | None], None]
_PLAIN = str.maketrans({"·": "|", "●": "Y", "◐": "P", "◔": "T", "○": "N", "…": "...", "×": "x"})


def style_of(stream: TextIO | None = None) -> Style:
    """The style of ``stream``, stdout unless another is named."""
    from cardfit.report.style import Style

    return Style.of(stream or sys.stdout)


def write(lines: Iterable[str] | str, stream: TextIO | None = None) -> None:
    """Write ``lines`` to ``stream`` (stdout unless named), each with a line end."""
    target = stream or sys.stdout
    text = lines.rstrip("\n") if isinstance(lines, str) else "\n".join(lines)
    target.write(encodable(text, target.encoding) + "\n")
    target.flush()


def error(text: str) -> None:
    """Write one sentence to stderr; signs that steer a terminal are shown, not sent."""
    write("".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text), sys.stderr)


def ask(question: str, default: str | None) -> str:
    """Put a question on stderr and read one line of stdin; ``default`` (empty where there is none) for an empty one."""
    shown = question if default is None else f"{question} [{default}]"
    sys.stderr.write(encodable(f"{shown}: ", sys.stderr.encoding))
    sys.stderr.flush()
    return sys.stdin.readline().strip() or default or ""


def encodable(text: str, encoding: str | None) -> str:
    """``text`` with what ``encoding`` lacks put in plainer signs.

    >>> encodable("1280x720 · 81", "ascii")
    '1280x720 | 81'
    """
    name = encoding or "ascii"
    try:
        text.encode(name)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(name, "replace").decode(name)
    except LookupError:
        return text
    return text


def remarks(lines: Iterable[str]) -> None:
    """Write notes to stderr, set off from the answer by an empty line; nothing when there are none."""
    found = list(lines)
    if found:
        write(["", *found], sys.stderr)


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Progress | None]:
    """A callback ``(what, share or None)`` that shows one line on a terminal; ``None`` where there is none."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(24),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)

        def show(what: str, share: float | None) -> None:
            bars.update(
                task, description=what, total=None if share is None else 1.0, completed=share or 0.0
            )

        yield show
