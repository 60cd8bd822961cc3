"""How many parameters a component has: built from its class and config, without weights.

In: a component. Out: parameters (tied ones once) and the buffer elements that its weight file holds too. Raises
MissingExtra without torch, BadFile for a config that its class does not take.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeGuard

from cardfit.errors import BadFile, MissingExtra
from cardfit.library.models import ComponentSpec
from cardfit.records import cache

_PACKAGES = ("torch", "diffusers", "transformers", "accelerate")
_FIELDS = ("params", "persistent_buffers")
# no module of an image or video model repeats a part more often or is wider; a larger number would take the machine
_MOST_REPEATS, _MOST_WIDE = 1_000, 10_000_000
_REPEATS = re.compile(r"layers|blocks|depth")


def counted(spec: ComponentSpec, name: str, source: str) -> ComponentSpec:
    """``spec`` with its own number of parameters; the same config is built once.

    Raises MissingExtra, BadFile naming ``source``.
    """
    _check_sizes(spec.config, name, source)
    about = [
        spec.class_path,
        spec.config_class,
        spec.config,
        [_version(each) for each in _PACKAGES],
    ]
    text = json.dumps(about, sort_keys=True)
    kept = f"count-{hashlib.sha256(text.encode()).hexdigest()[:32]}.z"
    found = cache.read(kept)
    if not _is_count(found):
        found = _built(spec, name, source)
        cache.write(kept, found)
    return spec.model_copy(update=dict(zip(_FIELDS, found, strict=True)))


def _is_count(found: Any) -> TypeGuard[list[int]]:
    return isinstance(found, list) and len(found) == 2 and all(type(n) is int for n in found)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _built(spec: ComponentSpec, name: str, source: str) -> list[int]:
    """Parameters and persistent buffer elements of the module that ``spec`` makes."""
    try:
        from cardfit.library.build import build

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = build(spec, "float32")
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        raise MissingExtra("source-needs-trace", source=source, package=package) from missing
    except Exception as error:
        kind = spec.class_path.rpartition(".")[2]
        why = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise BadFile(
            "source-not-built", source=source, component=name, kind=kind, why=why
        ) from error
    buffers = sum(
        buffer.numel()
        for owner in module.modules()
        for label, buffer in owner.named_buffers(recurse=False)
        if label not in owner._non_persistent_buffers_set
    )
    return [sum(parameter.numel() for parameter in module.parameters()), buffers]


def _check_sizes(config: dict[str, Any], name: str, source: str) -> None:
    """Raise BadFile for a whole number in ``config`` that no module has; the base of a rotary embedding is none."""
    for key, value in _numbers("", config):
        most = _MOST_REPEATS if _REPEATS.search(key) else _MOST_WIDE
        if abs(value) > most and "theta" not in key:
            args = {"component": name, "key": key, "found": value, "allowed": most}
            raise BadFile("source-config-size", source=source, **args)


def _numbers(key: str, value: Any) -> Iterator[tuple[str, int]]:
    """Every whole number below ``value`` with the nearest name above it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(name, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(key, inner)
    elif isinstance(value, int):
        yield key, value
