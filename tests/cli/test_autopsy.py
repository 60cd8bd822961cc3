"""The command: file or stdin, JSON or a page with the cure first, refusals in one sentence."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

import cardfit
from cardfit.cli.main import run
from cardfit.messages import TEXTS

TEXT = (
    "100%|####| 50/50 [05:10<00:00,  6.21s/it]\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of"
    " 23.64 GiB of which 1.19 GiB is free. Including non-PyTorch memory, this process has 22.44 GiB memory in"
    " use. Of the allocated memory 21.11 GiB is allocated by PyTorch, and 0.85 GiB is reserved by PyTorch but"
    " unallocated."
)


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "error.txt"
    file.write_text(TEXT, encoding="utf-8")
    return str(file)


@pytest.fixture
def piped(monkeypatch):
    def pipe(content: bytes, *, terminal: bool = False):
        stdin = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: terminal)
        monkeypatch.setattr("sys.stdin", stdin)

    return pipe


def test_the_page_names_the_cause_and_puts_the_cure_first(log, capsys):
    assert run(["autopsy", log]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == f"{TEXTS['autopsy-name-decode_untiled']} (likely)"
    first = next(at for at, line in enumerate(lines) if line.startswith("Do first"))
    assert first < next(at for at, line in enumerate(lines) if line.startswith("Seen"))
    assert "pipe.vae.enable_tiling()" in said.out and "4.0 GiB asked for" in said.out
    assert max(map(len, lines)) <= 100
    assert "--model" in said.err


def test_json_is_the_versioned_answer_from_stdin(piped, capsys):
    piped(TEXT.encode())
    assert run(["autopsy", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.autopsy/1"
    assert body["numbers"]["tried_bytes"] == 4 * 2**30
    assert (body["stage"], body["cause"]) == ("decode", "decode_untiled")
    assert all(cure["predicted"] is None for cure in body["cures"])


def test_words_of_comfyui_for_its_users(piped, capsys):
    piped(("Requested to load WanVAE\n" + TEXT).encode())
    assert run(["autopsy", "-"]) == 0
    out = capsys.readouterr().out
    assert "VAE Decode (Tiled): tile_size 512" in out and "pipe." not in out


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"", "text is empty"), (b"\x00\x01\x02", "not text"), (b" \n", "is empty")],
)
def test_what_is_no_text_is_refused(piped, capsys, content, part):
    piped(content)
    assert run(["autopsy"]) == 2
    said = capsys.readouterr()
    assert part in said.err and said.out == ""


def test_nobody_waits_at_a_terminal(piped, capsys):
    piped(b"", terminal=True)
    assert run(["autopsy"]) == 2
    assert "pipe the text in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["no-such-file"], "cannot be read"),
        (["--no-such"], "Unknown option: --no-such"),
        (["LOG", "--no-such"], "--no-such"),
        (["LOG", "--width", "832"], "Add --model"),
        (["LOG", "--model", "no-such-model"], "no such model"),
        (["LOG", "--ram", "much"], "as in --ram 64GB"),
    ],
)
def test_bad_input_is_two_with_the_next_step(log, capsys, words, part):
    assert run(["autopsy", *(log if word == "LOG" else word for word in words)]) == 2
    said = capsys.readouterr()
    assert part in said.err and "Traceback" not in said.err and said.out == ""


def test_the_verb_is_in_python_too():
    found = cardfit.autopsy(TEXT)
    assert (found.cause, found.numbers.capacity_bytes) == ("decode_untiled", round(23.64 * 2**30))


def test_a_model_that_the_library_lacks_is_said_and_the_rest_is_told(capsys):
    found = cardfit.autopsy('X.from_pretrained("some/body")\n' + TEXT)
    assert found.cause == "decode_untiled"
    assert [note.code for note in found.notes][0] == "autopsy-model-unknown"


def test_its_answer_has_a_schema(capsys):
    assert run(["schema", "autopsy"]) == 0
    assert "cures" in json.loads(capsys.readouterr().out)["properties"]
