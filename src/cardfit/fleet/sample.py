"""The representative sample on another machine: what is installed there, what is run, as lines of a shell.

In: an `Answer`. Out: lines. The machine plans the request for its own card and RAM first, so that the settings are
those that hold there, then measures it with random weights: nothing of the model is downloaded.
"""

from __future__ import annotations

from cardfit.plan.answer import Answer
from cardfit.request import PlanFile, Request

PACKAGES = ("torch", "diffusers", "transformers", "accelerate")
RECORD = "record.json"
_END = "REQUEST"  # ends the request in the script; no line of YAML stands alone like it


def setup_lines(answer: Answer) -> list[str]:
    """An environment with the versions that the answer was traced with."""
    found = answer.versions
    pins = [f"'{name}=={_public(found[name])}'" for name in PACKAGES if name in found]
    return [
        "python3 -m venv cardfit-venv",
        f"cardfit-venv/bin/pip install --quiet {' '.join([*pins, _own(found)])}",
    ]


def _own(versions: dict[str, str]) -> str:
    return f"'cardfit[run]=={versions['cardfit']}'"


def _public(version: str) -> str:
    """A version without the local part that names a build.

    >>> _public("2.13.0+cpu")
    '2.13.0'
    """
    return version.partition("+")[0]


def run_lines(answer: Answer) -> list[str]:
    """Plan on the spot, ending there where nothing fits, then run; the record goes into `RECORD`."""
    import yaml

    fields = answer.request.model_dump(exclude_none=True)
    file = PlanFile(request=Request(**fields), settings=answer.settings)
    text = yaml.safe_dump(
        file.model_dump(mode="json", exclude_unset=True), sort_keys=False, allow_unicode=True
    )
    return [
        "set -eu",
        f"cat > request.yaml <<'{_END}'",
        *text.splitlines(),
        _END,
        "cardfit-venv/bin/cardfit plan request.yaml --here --check --save chosen.yaml --force",
        f"cardfit-venv/bin/cardfit run chosen.yaml --json > {RECORD}",
    ]
