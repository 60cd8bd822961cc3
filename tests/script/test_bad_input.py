"""Whatever stands in a Python file: a reading, or one clear sentence; never a crash, never a hang, nothing run."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardfit.errors import BadFile, BadRequest, InputError
from cardfit.script.reader import read, read_text
from cardfit.script.source import MAX_BYTES

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
HEAD = "from diffusers import FluxPipeline\n"
SCRIPT = """import torch
from diffusers import FluxPipeline
pipe = FluxPipeline.from_pretrained("black-forest-labs/FLUX.1-dev", torch_dtype=torch.bfloat16)
pipe.to("cuda")
for n in range(3):
    image = pipe(f"picture {n}", width=512 + 16 * n, height=max(512, 256)).images[0]
"""


def sure(text: str) -> None:
    """Read it; an error of cardfit is an answer too, one without a traceback."""
    try:
        read_text(text)
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("pipe(", "line 1: not Python"),
        ("a = 1\nif True\n", "line 2: not Python"),
        ("x = 1\0", "not"),
        ("(" * 5000 + ")" * 5000, "not Python|nested"),
        ("x = " + "-" * 50_000 + "1", "nested|not Python"),
        ("x = " + " + ".join(["1"] * 50_000), "nested"),
        (
            "def f():\n    return f() + g(f)\ndef g(h):\n    return h()\nwhile True:\n  f()\n" * 40,
            "",
        ),
        (
            "x = 1\nfor a in range(60):\n for b in range(60):\n  for c in range(60):\n   x = x + 1",
            "steps to follow",
        ),
    ],
)
def test_what_cannot_be_followed_is_one_sentence(text, part):
    start = time.process_time()
    if part:
        with pytest.raises(BadFile, match=part):
            read_text(text)
    else:
        sure(text)
    assert time.process_time() - start < 10


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "x.py"
    with pytest.raises(BadFile, match="cannot be read"):
        read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadFile, match="UTF-8"):
        read(path)
    with path.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(BadFile, match="larger than"):
        read(path)


@pytest.mark.parametrize(
    "line",
    [
        "x = 10 ** 10 ** 10",
        "x = 'a' * 10 ** 12",
        "x = [0] * 10 ** 12",
        "x = f'{1:1000000000}'",
        "x = '%1000000000d' % 1",
        "x = range(10 ** 15)",
        "x = list(range(10 ** 9))",
        "x = 1 / 0",
        "x = int('9' * 5000)",
        "x = []\nfor i in range(64):\n    x = [x, x]\ny = x == [x]\nz = str(x)\nw = sum(x)",
        "x = []\nx.append(x)\ny = x + 1\nz = [*x]",
        "x = {}\nx[[1]] = 2\ny = x[x]",
        "x = 1 << 10 ** 9",
        "def f(n):\n    return f(n + 1)\nx = f(0)",
        "class A:\n    def __init__(self):\n        self.a = A()\nx = A()",
        "import sys\nsys.setrecursionlimit(10 ** 9)\nraise SystemExit\n",
        "lambda: (yield)",
        "match 3:\n    case 3:\n        x = 1",
        "x = y = z = undefined\nx, *y = z",
        "async def f():\n    async with g() as h:\n        pass\nimport asyncio\nasyncio.run(f())",
    ],
)
def test_nothing_runs_away(line):
    start = time.process_time()
    sure(HEAD + line + "\n" + SCRIPT)
    assert time.process_time() - start < 5


def test_nothing_is_run(tmp_path):
    mark = tmp_path / "ran"
    text = f"import os, pathlib\npathlib.Path({str(mark)!r}).touch()\nopen({str(mark)!r}, 'w')\n"
    text += (
        f"os.system('touch {mark}')\nexec('import this')\n__import__('os').system('touch {mark}')\n"
    )
    reading = read_text(text + SCRIPT)
    assert not mark.exists()
    assert [each.width for each in reading.requests] == [512, 528, 544]


@QUIET
@given(st.text(max_size=200))
def test_any_text(text):
    sure(text)
    sure(SCRIPT + text)


@QUIET
@given(st.integers(0, len(SCRIPT)), st.text(max_size=12), st.integers(0, 40))
def test_a_script_with_a_hole(at, put, gone):
    sure(SCRIPT[:at] + put + SCRIPT[at + gone :])


WORDS = [
    "pipe", "torch", "FluxPipeline", "width", "=", "(", ")", "[0]", ".", ",", "1024", "'cuda'", "if ", "for x in ",
    ":\n    ", "\n", "lambda: ", "**", "*", "not ", "range", "dict", "None", "+", "self", "def f(a, b=2):\n    ",
    "return ", "pipe.to", "pipe.vae", "images", "with ", "try:\n    ", "except:\n    ", "pass\n", "f'{x}'", "{", "}",
]  # fmt: skip


@QUIET
@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_words_in_any_order(words):
    sure(SCRIPT + "".join(words))


@pytest.mark.parametrize(
    ("answers", "part"),
    [
        ({"widht": 512}, "nothing asks for it"),
        ({"width": "wide"}, "needs a number"),
        ({"width": -3}, "needs a number"),
        ({"width": float("nan")}, "needs a number"),
        ({"width": True}, "needs a number"),
        ({"width": [1]}, "no number"),
    ],
)
def test_answers_that_fit_nothing(answers, part):
    with pytest.raises(BadRequest, match=part):
        read_text(SCRIPT, answers)
