"""Which weight scheme a quantization config means, or the name of a file.

In: the class and arguments of a config, as a script writes them, or a name. Out: a scheme of `cardfit.request`, None
where it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cardfit.request import Quantization
from cardfit.script.known import Known
from cardfit.script.values import Thing, kind_of, word_of


def named_scheme(known: Known, source: str | None) -> Quantization | None:
    """The scheme that the name of a repository or file says."""
    word = (source or "").lower()
    return next((s for shape, s in known.by_name.items() if re.search(shape, word)), None)


def config_scheme(known: Known, config: Thing) -> Quantization | None:
    """The scheme of one config object."""
    return scheme_of(known, kind_of(config.made), config.args, config.kwargs)


def scheme_of(
    known: Known, kind: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Quantization | None:
    """The scheme of a config class, or of a backend, with these arguments."""
    rule = known.schemes.get(kind)
    if rule is None:
        return None
    given = {**dict(zip(rule.places, args, strict=False)), **kwargs}
    for name, schemes in rule.by.items():
        if name in given and (found := schemes.get(word_of(given[name]))) is not None:
            return found
    return rule.scheme
