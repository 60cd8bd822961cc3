"""A sample for another machine as text: a SkyPilot task in YAML, or a script for ssh.

In: an `Answer`. Out: text whose comments say what is expected and what was left out. Nothing is launched here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import yaml

from cardfit.fleet.sample import RECORD, run_lines, setup_lines
from cardfit.fleet.skypilot import expected, task_of
from cardfit.messages import say
from cardfit.plan.answer import Answer
from cardfit.report.style import MAX_WIDTH

_FOLDER, _END = "cardfit-sample", "SAMPLE"


def skypilot(answer: Answer) -> str:
    """The YAML of a task. Raises BadRequest where no card that fits has a name that SkyPilot knows."""
    task = task_of(answer)
    head = [
        say("skypilot-head", {"model": answer.model.title}),
        *(each.text for each in task.cards),
        *(each.text for each in task.left_out),
        say("skypilot-launch"),
    ]
    text = yaml.dump(task.config, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return "\n".join(_comments(head)) + "\n" + text


def ssh(answer: Answer) -> str:
    """A script that runs the sample on the host that it is given, and brings the record back."""
    rows = [row for row in answer.cards if row.verdict == "fits"]
    head = [
        say("ssh-head", {"model": answer.model.title}),
        *([] if rows else [say("ssh-no-card")]),
        *(expected(row).text for row in rows[:_SHOWN]),
    ]
    lines = [
        "#!/bin/sh",
        *_comments(head),
        "set -eu",
        'host="${1:?}"',
        f"ssh \"$host\" 'bash -s' <<'{_END}'",
        "set -eu",
        f"mkdir -p {_FOLDER}",
        f"cd {_FOLDER}",
        *setup_lines(answer),
        *run_lines(answer),
        _END,
        f'scp "$host:{_FOLDER}/{RECORD}" .',
    ]
    return "\n".join(lines) + "\n"


_SHOWN = 8


def _comments(texts: Iterable[str]) -> list[str]:
    """Each text as a comment; signs that would end it are not there."""
    found = []
    for text in texts:
        wrapped = textwrap.wrap(" ".join(text.split()), MAX_WIDTH - 2, break_on_hyphens=False)
        found += [f"# {line}" for line in wrapped]
    return found


class _Dumper(yaml.SafeDumper):
    """Scripts stand as blocks, as a person would write them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)
