"""The parts of things: sizes of pictures, and what a pipeline's or component's config says by the library.

In: a `Thing`, a name, what is known and the answers that were given. Out: a value. A picture that is loaded has the
size that somebody gave (`Answers`); a component's config value is that of the library's entry for the repository that
it is loaded from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cardfit.errors import UnknownModel
from cardfit.library.load import load
from cardfit.library.models import Model
from cardfit.library.sources import indoors
from cardfit.script.known import Known
from cardfit.script.values import LOADERS, Open, Thing, is_plain

_SIDES = ("width", "height")
_CONFIGS = ("config", "_config")


@dataclass(slots=True)
class Answers:
    """What a person said that the file does not; ``used`` are the names that something asked for.

    ``of_script`` are those that the script has itself: they went through its code and are no field's answer.
    """

    given: Mapping[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    of_script: frozenset[str] = frozenset()

    def take(self, name: str) -> Any:
        """The answer for ``name``, None where there is none."""
        if name in self.given:
            self.used.add(name)
        return self.given.get(name)

    def take_field(self, name: str) -> Any:
        """The answer for a field of a request, None where there is none or the script has such a name itself."""
        return None if name in self.of_script else self.take(name)


def attribute(thing: Thing, name: str, line: int, known: Known, answers: Answers) -> Any:
    """The part ``name`` of a thing, or its value where that is known."""
    if name in thing.attrs:
        return thing.attrs[name]
    if is_picture(thing, known):
        if name == "size":
            return tuple(side(thing, each, line, answers) for each in _SIDES)
        if name in _SIDES:
            return side(thing, name, line, answers)
    value = _config_value(thing, name, known)
    return thing.part(name, line) if value is None else value


def item(thing: Thing, index: Any, line: int) -> Thing:
    """One of many: of a video, of what a pipeline made."""
    words = _path_in_config(thing)
    if words is None and is_plain(index):
        found = thing.part(f"[{index}]", line)
        if isinstance(found, Thing):
            found.size = found.size or thing.size
            return found
    return thing


def is_picture(thing: Thing, known: Known) -> bool:
    """Whether a thing is a picture, or a video of such, that the script loads or makes."""
    found: Thing | None = thing
    while found is not None:
        if found.size is not None or found.made.rpartition(".")[2] in known.pictures:
            return True
        if any(found.made.endswith(f".{each}") for each in known.pictures):
            return True
        found = found.owner if found.name.startswith("[") or found.name in known.results else None
    return False


def side(thing: Thing, name: str, line: int, answers: Answers) -> Any:
    """Width or height of a picture in pixels."""
    found: Thing | None = thing
    while found is not None:
        if found.size is not None:
            return found.size[_SIDES.index(name)]
        found = found.owner
    given = answers.take(f"image.{name}")
    return Open.of(line, "script-ask-picture") if given is None else given


def repo_of(thing: Thing | None) -> str | None:
    """The repository or file that a thing is loaded from; that of its pipeline for a part."""
    while thing is not None:
        if thing.made.rpartition(".")[2] in LOADERS:
            first = thing.argument(
                0, "pretrained_model_name_or_path", "pretrained_model_link_or_path"
            )
            if isinstance(first, str):
                return first
            if isinstance(first, Thing):
                return repo_of(first)
        thing = thing.owner or thing.base
    return None


def entry_of(repo: str | None, known: Known) -> Model | None:
    """The library's entry for a repository: itself, else the one whose shape it has."""
    if repo is None:
        return None
    for name in (repo, known.kin.get(repo.lower())):
        try:
            if name is not None:
                with indoors():  # a script's words open no path and ask no hub
                    return load(name)
        except UnknownModel:
            continue
    return None


def _path_in_config(thing: Thing) -> tuple[Thing, tuple[str, ...]] | None:
    """The component and the names below its ``config`` that a part stands for."""
    names: list[str] = []
    found: Thing | None = thing
    while found is not None and found.owner is not None:
        if found.name in _CONFIGS:
            return found.owner, tuple(reversed(names))
        names.append(found.name)
        found = found.owner
    return None


def _config_value(thing: Thing, name: str, known: Known) -> Any:
    """The value of ``pipe.vae_scale_factor`` or ``pipe.transformer.config.patch_size``; None where nobody knows."""
    fact = known.facts.get(name)
    entry = None
    if fact is not None and thing.owner is None:
        entry = entry_of(repo_of(thing), known)
        return None if entry is None else getattr(entry.vae, fact)
    found = _path_in_config(thing)
    if found is None:
        return None
    component, path = found
    entry = entry_of(repo_of(component), known)
    if entry is None or path:
        return None
    part = entry.components.get(component.name or str(component.kwargs.get("subfolder", "")))
    value = None if part is None else part.config.get(name)
    return tuple(value) if isinstance(value, list) else value
