"""The rules of the house, read from its source: who may import, print, exit and count in 1024s."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cardfit
from cardfit.messages import TEXTS, say

SRC = Path(cardfit.__file__).parent
FILES = sorted(path for path in SRC.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
HEAVY = {"torch", "diffusers", "transformers", "accelerate"}
WEB = {"pynvml", "fastapi", "starlette", "uvicorn", "jinja2"}
MEDIA = {"av", "scipy", "skimage", "flip_evaluator"}


def name(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def in_messages(path: Path) -> bool:
    return name(path).startswith("messages/")


# --- the public names


def test_the_public_names_are_exactly_these():
    assert cardfit.__all__ == [
        "Answer",
        "CardfitError",
        "Note",
        "Request",
        "Settings",
        "accuracy",
        "add_model",
        "assign",
        "autopsy",
        "calibrate",
        "cards",
        "check",
        "choose",
        "codecs",
        "comfy_check",
        "comfy_deploy",
        "comfy_inventory",
        "comfy_plan",
        "comfy_read",
        "comfy_record",
        "compare",
        "decode",
        "diff",
        "export",
        "front",
        "largest",
        "matrix",
        "model",
        "models",
        "near_misses",
        "offers",
        "plan",
        "probe",
        "read",
        "readme",
        "record",
        "records",
        "rent",
        "run",
        "script_plan",
        "sequence",
        "sweep",
        "together",
        "trace",
        "verify_readme",
    ]


def test_every_public_name_is_there_and_every_verb_can_be_called():
    from cardfit import api, verbs

    for each in cardfit.__all__:
        assert callable(getattr(cardfit, each))
    homes = {*api.__all__, *verbs.__all__, *cardfit._COMFY}
    assert homes == {each for each in cardfit.__all__ if each[0].islower()}


def test_a_room_that_is_a_verb_is_still_a_room(monkeypatch):
    import cardfit.plan.answer

    monkeypatch.setattr("cardfit.api.plan", lambda request: f"planned {request}")
    assert cardfit.plan("svd") == "planned svd"
    assert cardfit.plan.answer.Answer is cardfit.Answer
    with pytest.raises(AttributeError, match="nothing_such"):
        cardfit.nothing_such  # noqa: B018


def test_importing_is_quick_and_loads_nothing_heavy():
    program = (
        "import json, sys, time; start = time.perf_counter(); import cardfit; "
        "print(json.dumps([time.perf_counter() - start, sorted(sys.modules)]))"
    )
    environment = {"PYTHONPATH": str(SRC.parent)}
    found = []
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True, env=environment
        )
        seconds, modules = json.loads(ran.stdout)
        found.append(seconds)
    loaded = {module.partition(".")[0] for module in modules}
    small = {"pydantic", "rich", "cyclopts", "numpy", "yaml"}
    assert not loaded & (HEAVY | WEB | MEDIA | small)
    assert min(found) < 0.150


# --- who imports what


def imported(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=name)
def test_only_the_dry_run_and_the_builder_import_torch(path):
    rooms = ("trace/", "measure/runner/", "library/build.py")
    allowed = name(path).startswith(rooms)
    assert allowed or not imported(TREES[path]) & HEAVY


def test_reading_a_trace_needs_no_torch():
    assert not imported(TREES[SRC / "trace" / "stream.py"]) & HEAVY


# --- who prints, exits and counts


def calls(tree: ast.AST) -> list[str]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [ast.unparse(node.func) for node in nodes]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_only_the_report_prints_and_only_the_command_line_exits(path):
    found = calls(TREES[path])
    if not name(path).startswith("report/"):
        assert not {"print", "sys.stdout.write", "sys.stderr.write"} & set(found)
    if not name(path).startswith("cli/"):
        assert not {"sys.exit", "exit", "quit", "os._exit"} & set(found)


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of constants that are docstrings or stand alone as a remark."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return {id(node.value) for node in nodes}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_only_units_names_the_gib_and_multiplies_by_1024(path):
    if name(path) == "units.py":
        return
    tree = TREES[path]
    skip = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skip:
            assert not re.search(r"\b[KMGT]iB\b", node.value), node.lineno
        if isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                assert not (isinstance(side, ast.Constant) and side.value == 1024), node.lineno


# --- how modules look


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_module_has_a_head_and_is_no_larger_than_a_reader_can_hold(path):
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        return
    assert ast.get_docstring(TREES[path]), "no head"
    if not in_messages(path):
        assert text.count("\n") <= 550


@pytest.mark.parametrize("path", FILES, ids=name)
def test_functions_stay_under_60_lines(path):
    for node in ast.walk(TREES[path]):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[1:] or node.body  # the docstring and the signature do not count
            assert (node.end_lineno or 0) - first[0].lineno < 60, node.name


# --- messages


def said(tree: ast.AST) -> tuple[set[str], list[str]]:
    """Every text constant of a module, and the patterns of its f-strings that begin with a word."""
    texts, patterns = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [
                re.escape(part.value) if isinstance(part, ast.Constant) else ".+"
                for part in node.values
            ]
            if re.match(r"[a-z]{4}", parts[0]):
                patterns.append("".join(parts))
    return texts, patterns


def test_every_message_code_is_used_somewhere():
    texts: set[str] = set()
    patterns: list[str] = []
    for path in FILES:
        if not in_messages(path):
            more, shapes = said(TREES[path])
            texts |= more
            patterns += shapes
    for page in SRC.rglob("templates/*.html"):
        texts |= set(re.findall(r"'([a-z][\w-]+)'", page.read_text(encoding="utf-8")))
    unused = [
        code
        for code in TEXTS
        if code not in texts and not any(re.fullmatch(shape, code) for shape in patterns)
    ]
    assert unused == []


def raised_codes(tree: ast.AST) -> list[str]:
    """The literal first arguments of say(), Note(), Said.of() and of the errors."""
    from cardfit import errors

    speakers = {"say", "Note", "Said.of"} | {
        each for each, value in vars(errors).items() if isinstance(value, type)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            if (
                ast.unparse(node.func) in speakers
                and isinstance(first, ast.Constant)
                and isinstance(first.value, str)
            ):
                found.append(first.value)
    return found


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_code_that_is_said_has_words(path):
    assert [code for code in raised_codes(TREES[path]) if code not in TEXTS] == []


def test_a_code_belongs_to_one_room():
    count = 0
    for path in FILES:
        if in_messages(path):
            for node in ast.walk(TREES[path]):
                if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
                    count += len([key for key in node.value.keys if key is not None])
    assert count == len(TEXTS)


def test_a_code_without_words_is_a_programming_error():
    with pytest.raises(KeyError):
        say("no-such-code")


@pytest.mark.parametrize("code", TEXTS)
def test_messages_name_their_parts(code):
    """Named fields only, so that a translation may change their order."""
    fields = re.findall(r"(?<!\{)\{([^{}]*)\}", TEXTS[code])
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", field.partition(":")[0]) for field in fields)
