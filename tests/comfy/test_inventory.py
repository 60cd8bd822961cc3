"""`cardfit comfy inventory`: what lies in a models folder, counted once, and what a rebuild takes."""

from __future__ import annotations

import json
import os

import pytest

from cardfit.cli.main import run
from cardfit.comfy import inventory as room
from cardfit.comfy.inventory import inventory, library_bytes
from cardfit.errors import BadFile, BadRequest
from cardfit.plan.answer import Money


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    put(folder, "diffusion_models/wan/high.safetensors", b"h" * 3000)
    put(folder, "diffusion_models/low.safetensors", b"l" * 3000)  # same size, another content
    put(folder, "loras/a.safetensors", b"a" * 1000)
    put(folder, "loras/copy of a.safetensors", b"a" * 1000)
    put(folder, "loras/old.ckpt", b"o" * 500)
    put(folder, "vae/put_vae_here", b"")
    return folder


@pytest.fixture
def workflow(tmp_path):
    files = [("high.safetensors", "diffusion_models"), ("a.safetensors", "loras")]
    files += [("missing.safetensors", "vae"), ("../evil", "vae")]
    entries = [{"name": n, "directory": d, "url": None} for n, d in files]
    node = {"id": 1, "type": "Load", "properties": {"models": entries}}
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nodes": [node]}))
    return path


def test_kinds_sizes_and_duplicates(models):
    found = inventory(models)
    assert found.total_bytes == 8500
    assert [(k.kind, k.files, k.size_bytes) for k in found.kinds] == [
        ("diffusion_models", 2, 6000),
        ("loras", 3, 2500),
    ]
    (same,) = found.same
    assert same.paths == ("loras/a.safetensors", "loras/copy of a.safetensors")
    assert (same.size_bytes, same.spare_bytes, found.spare_bytes) == (1000, 1000, 1000)
    assert [each.path for each in found.files if each.pickle] == ["loras/old.ckpt"]
    assert found.rebuild.size_bytes == 7500 and found.rebuild.files == 4
    assert found.unused == found.missing == () and found.rebuild.seconds is None


def test_against_workflows(models, workflow):
    found = inventory(models, [workflow])
    assert found.unused == (
        "diffusion_models/low.safetensors",
        "loras/copy of a.safetensors",
        "loras/old.ckpt",
    )
    assert [each.path for each in found.missing] == ["vae/missing.safetensors"]
    assert "comfy-model-outside" in {note.code for note in found.notes}
    # high, a, and the missing one whose size nobody knows
    assert (found.rebuild.files, found.rebuild.size_bytes) == (3, 4000)


def test_a_rebuild_has_a_price(models):
    usd = {"currency": "USD"}
    found = inventory(
        models,
        down_bytes_per_s=2.5,
        hourly=Money(amount=0.6, **usd),
        disk_per_gb_month=Money(amount=0.1, **usd),
    ).rebuild
    assert found.seconds == 3000 and found.cost.amount == pytest.approx(0.5)
    assert found.keep_month.amount == pytest.approx(7500e-9 * 0.1)


def test_files_alike_at_their_begin_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_HEAD", 4)
    monkeypatch.setattr(room, "_PIECE", 8)
    for name, content in (("a", b"same" + b"1" * 60), ("b", b"same" + b"2" * 60), ("c", b"x" * 64)):
        put(tmp_path, f"loras/{name}.safetensors", content)
    put(tmp_path, "loras/d.safetensors", b"same" + b"1" * 60)
    shares = []
    found = inventory(tmp_path, progress=lambda what, share: shares.append(share))
    assert [same.paths for same in found.same] == [("loras/a.safetensors", "loras/d.safetensors")]
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) == 3 * 8
    hashed = {each.path for each in found.files if each.sha256}
    assert "loras/c.safetensors" not in hashed and len(hashed) == 3


def test_links_are_not_followed(models, tmp_path):
    outside = put(tmp_path, "elsewhere/secret.safetensors", b"s" * 10)
    (models / "loras" / "out.safetensors").symlink_to(outside)
    (models / "loras" / "gone.safetensors").symlink_to(tmp_path / "nothing")
    (models / "more").symlink_to(tmp_path / "elsewhere")
    (models / "loras" / "in.safetensors").symlink_to(models / "loras" / "a.safetensors")
    (models / "again").symlink_to(models)
    os.link(models / "loras" / "a.safetensors", models / "loras" / "hard.safetensors")
    found = inventory(models)
    assert found.total_bytes == 8500
    outside = {note.args["path"] for note in found.notes if note.code == "inventory-link-outside"}
    assert outside == {"loras/out.safetensors", "loras/gone.safetensors", "more"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_named(models):
    (models / "loras" / "a.safetensors").chmod(0)
    assert "inventory-not-read" in {note.code for note in inventory(models).notes}


def test_a_file_that_vanishes_meanwhile_is_named(models):
    def remove(what, share):
        (models / "loras" / "copy of a.safetensors").unlink(missing_ok=True)

    found = inventory(models, progress=remove)
    assert found.same == ()
    (note,) = found.notes
    assert note.code == "inventory-not-read" and "copy of a" in note.text


def test_hostile_names_are_shown_escaped(tmp_path, capsys):
    put(tmp_path / "m", "loras/\x1b[31m\n.safetensors", b"x")
    put(tmp_path / "m", os.fsdecode(b"loras/\xff.safetensors"), b"y")
    assert run(["comfy", "inventory", str(tmp_path / "m"), "--json"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and r"\\x1b[31m\\n.safetensors" in out


def test_what_is_no_folder_is_said(tmp_path):
    with pytest.raises(BadFile, match="is not a folder"):
        inventory(tmp_path / "none")


def test_the_page(models, workflow, capsys):
    words = ["comfy", "inventory", str(models), "--workflow", str(workflow), "--down", "1Mbit"]
    assert run([*words, "--hourly", "0.45", "--disk", "0.07"]) == 0
    said = capsys.readouterr()
    for part in ("diffusion_models      2", "Twice", "Unused", "Missing   1 files", "Rebuild"):
        assert part in said.out
    assert max(map(len, said.out.splitlines())) <= 100 and "../evil" in said.err
    assert run([*words[:-1], "fast"]) == 2
    assert "--down fast: give a number with a unit" in capsys.readouterr().err


def test_rent_takes_its_size(models, tmp_path, capsys):
    assert run(["comfy", "inventory", str(models), "--json"]) == 0
    file = tmp_path / "library.json"
    file.write_text(capsys.readouterr().out)
    assert library_bytes(file) == 8500
    rent = ["rent", "--monthly", "286", "--hourly", "0.45", "--disk", "0.07", "--json"]
    assert run([*rent, "--library", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["question"]["library_bytes"] == 8500
    file.write_text('{"schema": "cardfit.plan/1"}')
    assert run([*rent, "--library", str(file)]) == 2
    assert "is not an inventory" in capsys.readouterr().err
    with pytest.raises(BadFile):
        library_bytes(tmp_path / "none.json")
    with pytest.raises(BadRequest):
        from cardfit.cli.rent import RentFlags, question_from

        question_from(RentFlags(library_bytes="lots"))
