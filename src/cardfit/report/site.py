"""The answers of many presets as pages for any static host: looked up, not asked; nothing runs behind them.

In: models, languages, and how a request is planned. Out: a folder with an index, a page for each preset and one file a
model for the index to choose from; it opens from a disk too. The folder is built beside its place and put there whole.
A page holds every card; its prices and their ages are those of the day it was built.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from cardfit import __version__
from cardfit.errors import BadFile, DryRunFailed, InputError, Note
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.messages import LANGUAGE_NAMES, day, say, speaking
from cardfit.plan.answer import Answer
from cardfit.report import html
from cardfit.report.line import line as answer_line
from cardfit.report.plan_view import Filter, PlanView, view
from cardfit.report.style import SHAPES, Style
from cardfit.request import Request
from cardfit.trace import atlas

MARKER = "cardfit-site.json"
_MOST_SIZES = 6
Plan = Callable[[Request], Answer]
Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class Preset:
    """One request of a model; ``name`` is the name of its page."""

    request: Request
    name: str
    label: str

    @property
    def path(self) -> str:
        """Its page, from the index of its language."""
        return f"{self.request.model}/{self.name}.html"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A model with the presets that have a page."""

    id: str
    title: str
    video: bool
    presets: tuple[Preset, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """What a page says of the site: where things are from it, the day, and whose prices."""

    up: str
    home: str
    languages: tuple[tuple[str, str, str], ...]
    day: str
    offers: str


@dataclass(frozen=True, slots=True)
class Site:
    """What was written, and what could not be."""

    pages: int
    skipped: tuple[Note, ...]


def presets(entry: Model) -> tuple[Preset, ...]:
    """The sizes that the model was made for, and for videos half of its frames too, as far as the traces go."""
    usual, _ = resolve(entry, Request(model=entry.id))
    domain = atlas.domain(entry, usual)
    if domain is None:
        return ()
    listed = entry.rules.native_sizes or entry.rules.size.sizes
    sizes = dict.fromkeys([(usual.width, usual.height), *listed[:_MOST_SIZES]])
    half = max((n for n in domain.frame_counts if n <= usual.num_frames // 2 + 1), default=1)
    counts = dict.fromkeys([usual.num_frames, half]) if entry.is_video else {1: None}
    found = []
    for width, height in sizes:
        for frames in counts:
            size = {"width": width, "height": height, "num_frames": frames}
            if domain.outside(usual.model_copy(update=size)) is None:
                name = f"{width}x{height}" + (f"x{frames}" if entry.is_video else "")
                asked = {"model": entry.id, "width": width, "height": height}
                more = {"num_frames": frames} if entry.is_video else {}
                label = name.replace("x", "\u00d7")
                found.append(Preset(Request.model_validate(asked | more), name, label))
    return tuple(found)


def check(folder: Path, force: bool) -> None:
    """Raise BadFile where ``folder`` holds anything but an earlier site that may be replaced."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() and not (folder / MARKER).is_file():
        raise BadFile("site-not-ours", path=folder)
    if folder.exists() and not force:
        raise BadFile("site-exists", path=folder)


def build(
    folder: Path,
    models: Sequence[Model],
    languages: Sequence[str],
    plan: Plan,
    *,
    offers: str,
    force: bool = False,
    progress: Progress | None = None,
) -> Site:
    """Write the site of ``models``; the first of ``languages`` stands at the top, each other in a folder of its name.

    Raises BadFile as `check`, and where the disk cannot take it; a preset that cannot be planned is left out.
    """
    check(folder, force)
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        beside.mkdir(parents=True)
        writer = _Writer(beside, languages, plan, offers, progress)
        pages = writer.write(models)
        _put(beside, folder)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadFile("planfile-not-written", path=folder, why=why) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return Site(pages, tuple(writer.skipped.values()))


def _put(made: Path, folder: Path) -> None:
    """Put the finished folder in its place; what was there goes last."""
    old = made.with_suffix(".old")
    if folder.exists():
        folder.rename(old)
    made.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


class _Writer:
    """Writes every language of a site below one folder."""

    def __init__(
        self,
        root: Path,
        languages: Sequence[str],
        plan: Plan,
        offers: str,
        progress: Progress | None,
    ) -> None:
        self._root, self._languages, self._plan = root, languages, plan
        self._offers, self._progress = offers, progress
        self._templates = html.environment()
        self.skipped: dict[str, Note] = {}

    def write(self, models: Sequence[Model]) -> int:
        """Everything; returns how many pages there are."""
        asked = [(entry, presets(entry)) for entry in models]
        whole = len(self._languages) * max(1, sum(len(each) for _, each in asked))
        pages = 0
        for name in self._languages:
            with speaking(name):
                shelves = []
                for entry, listed in asked:
                    kept: list[tuple[Preset, str]] = []
                    for preset in listed:
                        if self._progress is not None:
                            self._progress(f"{entry.title} {preset.label}", pages / whole)
                        if self._page(name, entry, preset, kept):
                            pages += 1
                    if kept:
                        made = tuple(preset for preset, _ in kept)
                        shelves.append(Shelf(entry.id, entry.title, entry.is_video, made))
                        self._data(name, entry, kept)
                self._index(name, shelves)
        (self._root / "cardfit.css").write_text(html.style(), encoding="utf-8")
        script = (html.FOLDER / "site.js").read_text(encoding="utf-8")
        (self._root / "site.js").write_text(script, encoding="utf-8")
        marker = {"schema": "cardfit.site/1", "cardfit": __version__, "pages": pages}
        (self._root / MARKER).write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")
        return pages

    def _page(
        self, lang: str, entry: Model, preset: Preset, kept: list[tuple[Preset, str]]
    ) -> bool:
        try:
            answer = self._plan(preset.request)
        except (InputError, DryRunFailed) as refused:
            note = Note("site-skipped", {"page": preset.path, "why": str(refused)})
            self.skipped[preset.path] = note
            return False
        dtypes = {n: part.recommended_dtype for n, part in entry.components.items() if part.counted}
        shown = view(answer, recommended=dtypes, only=Filter(every=True))
        built = self._built(lang, f"../{'' if lang == self._languages[0] else '../'}", preset.path)
        text = self._templates.get_template("site_page.html").render(
            view=shown, version=__version__, built=built, style=""
        )
        self._write(lang, preset.path, text)
        kept.append(
            (
                preset,
                json.dumps(
                    _data(preset, shown, answer_line(answer, Style(), dtypes)), ensure_ascii=False
                ),
            )
        )
        return True

    def _data(self, lang: str, entry: Model, kept: Iterable[tuple[Preset, str]]) -> None:
        rows = ",\n".join(text for _, text in kept)
        self._write(
            lang, f"{entry.id}/data.js", f"cardfit({json.dumps(entry.id)}, [\n{rows}\n]);\n"
        )

    def _index(self, lang: str, shelves: Sequence[Shelf]) -> None:
        order = sorted(shelves, key=lambda shelf: shelf.title.lower())
        named = (("web-group-pictures", False), ("web-group-videos", True))
        groups = [(say(code), [s for s in order if s.video == video]) for code, video in named]
        built = self._built(lang, "" if lang == self._languages[0] else "../", "index.html")
        text = self._templates.get_template("site_index.html").render(
            groups=[each for each in groups if each[1]], version=__version__, built=built
        )
        self._write(lang, "index.html", text)

    def _built(self, lang: str, up: str, path: str) -> Built:
        """How a page at ``path`` below its language finds the others; ``up`` leads to the root."""
        links = tuple(
            (n, LANGUAGE_NAMES[n], f"{up}{self._folder(n)}{path}") for n in self._languages
        )
        home = f"{up}{self._folder(lang)}index.html"
        return Built(up, home, links, day(date.today()), self._offers)

    def _folder(self, lang: str) -> str:
        return "" if lang == self._languages[0] else f"{lang}/"

    def _write(self, lang: str, path: str, text: str) -> None:
        file = self._root / self._folder(lang) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _data(preset: Preset, shown: PlanView, said: str) -> dict[str, object]:
    """What the index shows of a preset: each card's id, name, verdict, settings, peak, time and price."""
    cards = [
        [
            line.id,
            line.name,
            f"{SHAPES[line.shape]} {line.verdict}",
            line.settings,
            say("view-peak-of", {"peak": line.peak, "usable": line.usable}) if line.peak else "",
            line.time,
            line.price,
        ]
        for line in sorted(shown.cards, key=lambda line: line.name.lower())
    ]
    return {"name": preset.name, "label": preset.label, "said": said, "cards": cards}
