"""Reading: every form of the message, encodings, limits, and that no text whatever stops it."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.autopsy import MAX_BYTES, diagnose, pasted, read, text_of, text_of_file
from cardfit.errors import BadFile, BadRequest
from cardfit.units import GIB, MIB

_spec = importlib.util.spec_from_file_location("texts", Path(__file__).with_name("texts.py"))
t = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(t)

SIZES = st.integers(min_value=2**21, max_value=2**41)


def printed(size: int) -> str:
    """A size as PyTorch's format_size prints it."""
    if size < 2**20:
        return f"{size / 2**10:.2f} KiB"
    return f"{size / 2**20:.2f} MiB" if size < 2**30 else f"{size / 2**30:.2f} GiB"


def near(found: int, size: int) -> bool:
    return abs(found - size) <= 0.0051 * (GIB if size >= GIB else MIB)


@given(SIZES, SIZES, SIZES, SIZES, SIZES, SIZES)
def test_the_numbers_of_the_new_message_come_back(tried, total, free, used, allocated, apart):
    sizes = (tried, total, free, used, allocated, apart)
    numbers = read(t.new(*map(printed, sizes))).numbers
    found = (
        numbers.tried_bytes,
        numbers.capacity_bytes,
        numbers.free_bytes,
        numbers.in_use_bytes,
        numbers.allocated_bytes,
        numbers.reserved_unallocated_bytes,
    )
    assert all(map(near, found, sizes))
    assert numbers.reserved_bytes == numbers.allocated_bytes + numbers.reserved_unallocated_bytes


@given(SIZES, SIZES, SIZES, SIZES, SIZES, st.integers(0, 15))
def test_the_numbers_of_the_old_message_come_back(tried, total, allocated, free, reserved, gpu):
    sizes = (tried, total, allocated, free, reserved)
    numbers = read(t.old(*map(printed, sizes), gpu=gpu)).numbers
    found = (
        numbers.tried_bytes,
        numbers.capacity_bytes,
        numbers.allocated_bytes,
        numbers.free_bytes,
        numbers.reserved_bytes,
    )
    assert all(map(near, found, sizes))
    assert numbers.device == gpu


WORDS = (
    st.sampled_from(
        [
            "CUDA out of memory. Tried to allocate ",
            "9" * 400 + " GiB",
            "1.5 GiB",
            'File "a.py", line 1, in f',
            "Traceback (most recent call last):",
            "100%|##| 0/0 [00:00<?, 1s/it]",
            "Killed",
            "from_pretrained(",
            "num_frames=0",
            "width=99999",
            "Process 1 has 2 GiB memory in use",
            "RuntimeError:",
            "\r",
            "\x1b[31m",
            "\x00",
            "Requested to load ",
        ]
    )
    | st.text()
)


@given(st.lists(WORDS).map("\n".join) | st.lists(WORDS).map("".join))
def test_no_text_stops_it(text):
    try:
        found = diagnose(read(text))
    except BadRequest as refused:
        assert refused.code == "autopsy-empty"
        return
    assert found.why.text
    assert found.model_dump_json()
    pasted(read(text).lines)


@given(st.binary(max_size=400))
def test_no_bytes_stop_it(content):
    try:
        text, _ = text_of(io.BytesIO(content), "log")
    except BadFile as refused:
        assert refused.code == "autopsy-binary" and b"\x00" in content
        return
    assert isinstance(text, str)


def test_an_empty_text_is_refused():
    with pytest.raises(BadRequest, match="empty"):
        read(" \n\t\n")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    file = tmp_path / "core"
    file.write_bytes(b"\x7fELF\x00\x00")
    with pytest.raises(BadFile, match="not text"):
        text_of_file(file)
    with pytest.raises(BadFile, match="cannot be read"):
        text_of_file(tmp_path)
    with pytest.raises(BadFile, match="cannot be read"):
        text_of_file(tmp_path / "none")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_log_in_any_usual_encoding_is_read(tmp_path, encoding):
    file = tmp_path / "log.txt"
    file.write_bytes(f"modèle\r\n{t.new(*['1.00 GiB'] * 6)}".encode(encoding))
    text, notes = text_of_file(file)
    assert read(text).numbers.tried_bytes == GIB
    assert notes == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_of_a_large_log_the_end_is_read(tmp_path, encoding):
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    file = tmp_path / "log.txt"
    filler = "nothing to see here\n" * (6 * MIB // 20 + 1)
    file.write_bytes((mark + filler + t.new(*["1.00 GiB"] * 6)).encode(encoding))
    text, notes = text_of_file(file)
    assert len(text) <= MAX_BYTES
    assert text.endswith(t.ADVICE)
    assert [note.code for note in notes] == ["autopsy-tail"]


def test_a_message_that_a_terminal_wrapped_is_one_message():
    text = t.new("1.50 GiB", "23.64 GiB", "1.00 GiB", "22.00 GiB", "20.00 GiB", "1.00 GiB")
    wrapped = "\n".join(
        [text[:90], text[90:].replace(" GiB is reserved", " GiB is\nreserved", 1)]
    ).replace("Of the allocated", "\nOf the allocated")
    numbers = read(wrapped).numbers
    assert (numbers.allocated_bytes, numbers.reserved_unallocated_bytes) == (20 * GIB, GIB)


def test_what_others_hold_is_the_rest_of_the_card():
    numbers = read(
        t.new("1.00 GiB", "24.00 GiB", "1.00 GiB", "15.00 GiB", "14.00 GiB", "0 bytes")
    ).numbers
    assert numbers.other_bytes == 8 * GIB


def test_colours_and_control_signs_never_come_back():
    found = diagnose(read("\x1b[31mRuntimeError: CUDA out of memory\x07.\x1b]0;title\x07\x1b[0m"))
    assert found.error is not None and found.error.isprintable()


# --- requests that stand in the text


def test_a_diffusers_call_is_read():
    code = (
        'pipe = WanPipeline.from_pretrained("Wan-AI/Wan2.1-T2V-14B-Diffusers", torch_dtype=torch.bfloat16)\n'
        "pipe.enable_model_cpu_offload()\npipe.vae.enable_tiling()\n"
        "# height=1\nvideo = pipe(prompt, height=480, width=832, num_frames=81, guidance_scale=5.0)"
    )
    found = pasted(code.splitlines())
    assert found.model == "wan2.1-t2v-14b"
    assert found.request == {"height": 480, "width": 832, "num_frames": 81, "guidance_scale": 5.0}
    assert found.settings == {"offload": "model", "vae_tiling": True, "dtype": {"*": "bfloat16"}}


def test_a_command_line_of_a_script_is_read():
    found = pasted(
        [
            "python generate.py --task t2v-14B --size 1280*720 --frame_num 81 --ckpt_dir ./Wan2.1-T2V-14B"
        ]
    )
    assert found.model == "wan2.1-t2v-14b"
    assert found.request == {"width": 1280, "height": 720, "num_frames": 81}
    found = pasted(["python3 sample_video.py --video-size 720 1280 --video-length 129"])
    assert found.request == {"height": 720, "width": 1280, "num_frames": 129}


def test_what_is_not_a_plain_value_is_not_known():
    found = pasted(["pipe(height=h, width=64 * 13, num_frames=int(s))"])
    assert found.request == {}


def test_a_repository_that_the_library_lacks_is_named():
    found = pasted(['X.from_pretrained("someone/their-model")'])
    assert (found.model, found.unknown_model) == (None, "someone/their-model")
    assert found.settings == {"dtype": {"*": "float32"}}


def test_a_frame_without_its_source_line_does_not_swallow_the_error():
    text = (
        'Traceback (most recent call last):\n'
        '  File "/x/diffusers/models/autoencoders/autoencoder_kl_wan.py", line 1200, in decode\n'
        'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n'
    )  # fmt: skip
    found = read(text)
    assert found.error is not None
    assert found.error.kind == "device"
    assert found.numbers.tried_bytes == 3 * 2**29
