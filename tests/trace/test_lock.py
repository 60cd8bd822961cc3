"""Versions in lock and requirements files."""

from __future__ import annotations

import pytest

from cardfit import api
from cardfit.errors import BadFile
from cardfit.trace.lock import read_lock


def toml(table):
    rows = (("diffusers", "0.36.0"), ("torch", "2.9.0+cu126"))
    return "".join(f'[[{table}]]\nname = "{name}"\nversion = "{v}"\n' for name, v in rows)


PINS = "# pinned\ndiffusers[torch]==0.36.0 ; python_version > '3.8'\ntorch == 2.9.0+cu126\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [("requirements.txt", PINS), ("uv.lock", toml("package")), ("pylock.toml", toml("packages"))],
)
def test_versions_are_read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert read_lock(path) == {"diffusers": "0.36.0", "torch": "2.9.0+cu126"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("uv.lock", b"[[package"),
        ("requirements.txt", b"numpy==2.0\n"),
        ("requirements.txt", b"\xff\xfe\x00"),
        ("requirements.txt", b"diffusers>=0.30\n"),
    ],
)
def test_a_file_without_the_versions_is_refused_by_name(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(BadFile, match=name):
        read_lock(path)
    with pytest.raises(BadFile, match="none.txt"):
        read_lock(tmp_path / "none.txt")


def test_other_versions_widen_the_band_and_say_so(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("diffusers==0.36.0\n")
    plain = api.plan("flux.1-schnell", cards=["rtx-4090"])
    held = api.plan("flux.1-schnell", cards=["rtx-4090"], lock=path)
    assert [s.reserved_bytes for s in held.stages] == [s.reserved_bytes for s in plain.stages]
    assert all(h.high_bytes > p.high_bytes for h, p in zip(held.stages, plain.stages, strict=True))
    (note,) = [n for n in held.notes if n.code == "lock-differs"]
    assert "diffusers 0.36.0" in note.text
    assert "trace" in note.text
    path.write_text(f"diffusers=={plain.versions['diffusers']}\n")
    assert api.plan("flux.1-schnell", cards=["rtx-4090"], lock=path).stages == plain.stages
