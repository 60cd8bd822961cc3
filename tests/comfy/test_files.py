"""Workflows in the metadata of pictures and videos, and sizes of pictures."""

from __future__ import annotations

import io
import json
import struct
import zlib

import numpy as np
import pytest

from cardfit.comfy.files import MAX_BYTES, looks_like_workflow, picture_size, read_raw
from cardfit.comfy.reader import read_workflow
from cardfit.errors import BadFile

av = pytest.importorskip("av")
image = pytest.importorskip("PIL.Image")


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(*texts: bytes, width: int = 40, height: int = 30) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\0" * 3 * width) * height)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + b"".join(texts)
        + chunk(b"IDAT", pixels)
        + chunk(b"IEND", b"")
    )


def text_chunk(key: str, value: str, how: str) -> bytes:
    head, raw = key.encode() + b"\0", value.encode()
    if how == "tEXt":
        return chunk(b"tEXt", head + raw)
    if how == "zTXt":
        return chunk(b"zTXt", head + b"\0" + zlib.compress(raw))
    packed = zlib.compress(raw) if how == "iTXt packed" else raw
    flag = b"\1" if how == "iTXt packed" else b"\0"
    return chunk(b"iTXt", head + flag + b"\0" + b"en\0" + b"\0" + packed)


@pytest.mark.parametrize("how", ["tEXt", "zTXt", "iTXt", "iTXt packed"])
def test_png(make, tmp_path, how):
    path = tmp_path / "out.png"
    texts = [text_chunk("prompt", json.dumps(make.prompt()), how)]
    path.write_bytes(png(*texts))
    assert read_workflow(path).form == "api"
    texts.append(text_chunk("workflow", json.dumps(make.text_to_image()), how))
    path.write_bytes(png(*texts))
    assert read_workflow(path).form == "ui"  # the editor's graph says more
    assert picture_size(path) == (40, 30)


def test_png_without_a_workflow(tmp_path):
    path = tmp_path / "photo.png"
    path.write_bytes(png(text_chunk("Comment", "a photo", "tEXt")))
    with pytest.raises(BadFile, match="holds no workflow"):
        read_raw(path)


def test_a_zlib_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.png"
    bomb = zlib.compress(b"0" * (MAX_BYTES + 10))
    path.write_bytes(png(chunk(b"zTXt", b"workflow\0\0" + bomb)))
    with pytest.raises(BadFile, match="larger than"):
        read_raw(path)


def test_webp(make, tmp_path):
    path = tmp_path / "out.webp"
    exif = image.Exif()
    exif[0x0110] = "prompt:" + json.dumps(make.prompt())
    exif[0x010F] = "workflow:" + json.dumps(make.text_to_image())
    image.new("RGB", (48, 32)).save(path, exif=exif)
    assert read_workflow(path).form == "ui"
    assert picture_size(path) == (48, 32)


@pytest.mark.parametrize("form", ["own tags", "one comment"])
def test_video(make, tmp_path, form):
    path = tmp_path / "out.mp4"
    options = {"movflags": "use_metadata_tags"}
    with av.open(str(path), "w", options=options) as container:
        if form == "own tags":
            container.metadata["workflow"] = json.dumps(make.text_to_image())
        else:
            both = {"prompt": json.dumps(make.prompt()), "workflow": make.text_to_image()}
            container.metadata["comment"] = json.dumps(both)
        stream = container.add_stream("mpeg4", rate=8)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
    assert read_workflow(path).form == "ui"


def test_a_video_that_is_none(tmp_path):
    path = tmp_path / "out.mp4"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(BadFile, match="cannot be read"):
        read_raw(path)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_sizes_of_pictures(tmp_path, kind):
    path = tmp_path / "picture"
    content = io.BytesIO()
    image.effect_noise((123, 77), 40).save(content, kind)
    path.write_bytes(content.getvalue())
    assert picture_size(path) == (123, 77)


def test_a_lossless_webp_has_a_size_too(tmp_path):
    path = tmp_path / "a.webp"
    image.effect_noise((123, 77), 40).save(path, lossless=True)
    assert picture_size(path) == (123, 77)


def test_a_picture_answers_for_what_is_loaded(make, tmp_path):
    path = tmp_path / "photo.jpg"
    image.new("RGB", (640, 480)).save(path)
    encode = make.node(2, "VAEEncode", [], [("pixels", "IMAGE", 8)], ("LATENT",))
    picture = make.node(8, "LoadImage", ["x.png"], (), ("IMAGE", "MASK"))
    raw = make.text_to_image(latent=encode, more=[picture], links=[(8, 8, 0, 2, 0, "IMAGE")])
    assert {(each.id, each.input) for each in read_workflow(raw).missing} == {
        ("8", "width"),
        ("8", "height"),
    }
    found = read_workflow(raw, image=path)
    assert not found.missing
    assert (found.requests[0].width, found.requests[0].height) == (640, 480)
    assert found.requests[0].task == "image-to-image"


def test_what_looks_like_a_workflow():
    yes = ["a.json", "A.PNG", "a.webp", "a.mp4", "a.webm"]
    assert all(looks_like_workflow(name) for name in yes)
    assert not any(
        looks_like_workflow(name) for name in ("flux.1-dev", "a.yaml", "json", "a.safetensors")
    )
