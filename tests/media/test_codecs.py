"""The codec probe: what runs is counted, and what people met is told apart."""

from __future__ import annotations

import json

import pytest

from cardfit.cli.main import run
from cardfit.media.codecs import TRIED, probe_codecs
from cardfit.media.diagnose import DRIVERS, diagnose
from cardfit.messages import TEXTS

API = (
    "Driver does not support the required nvenc API version. Required: {} Found: {}\n"
    "The minimum required Nvidia driver for nvenc is 570.0 or newer"
)
# What FFmpeg said in public threads, and what was behind it.
CASES = [
    ("B03 VideoHelperSuite 485", "Unknown encoder 'h264_nvenc'", {}, "not_in_build"),
    ("B04 comfyui 130", "Cannot load libnvidia-encode.so.1", {}, "no_video_capability"),
    (
        "B07 Savant 216",
        "OpenEncodeSessionEx failed: unsupported device (2): (no details)",
        {},
        "no_engine",
    ),
    ("B09 HandBrake 1998", "OpenEncodeSessionEx failed: unsupported device (2)", {}, "no_engine"),
    (
        "B11 HandBrake 1666",
        "Codec not supported\nNo capable devices found",
        {"engines": 1},
        "codec_not_on_card",
    ),
    ("B12 HandBrake 5824", "Codec not supported", {"engines": 1}, "codec_not_on_card"),
    ("no engine at all", "No capable devices found", {"engines": 0}, "no_engine"),
    ("B14 codexffmpeg 181", API.format("13.0", "12.2"), {}, "driver_too_old"),
    ("B15 HandBrake 5641", API.format("12.1", "12.0"), {}, "driver_too_old"),
    ("B19 PyAV 596", "Cannot load libcuda.so.1", {}, "no_driver"),
    (
        "B22 nvidia-docker 1530",
        "Cannot load libnvcuvid.so.1\nFailed loading nvcuvid.",
        {},
        "no_video_capability",
    ),
    (
        "B24 nvidia-docker 766",
        "Cannot load libcuda.so.1",
        {"environment": {"NVIDIA_DRIVER_CAPABILITIES": "all"}},
        "no_runtime",
    ),
    (
        "B28 go-transcode 42",
        "OpenEncodeSessionEx failed: out of memory (10): (no details)",
        {},
        "session_limit",
    ),
    ("B52 VapourBox 74", "4:2:2 chroma is not supported", {}, "pixel_format"),
    (
        "the driver is not there either",
        "Cannot load libnvcuvid.so.1",
        {"driver": False},
        "no_driver",
    ),
    ("nothing known", "the moon is in the wrong house", {}, "other"),
]


@pytest.mark.parametrize(("name", "log", "more", "cause"), CASES, ids=[case[0] for case in CASES])
def test_a_message_gets_its_cause(name, log, more, cause):
    found = diagnose(log, **more)
    assert found.cause == cause
    assert f"codecs-why-{cause}" in TEXTS
    assert found.detail in log


def test_versions_of_the_api_name_the_driver():
    found = diagnose(API.format("12.1", "12.0"))
    assert (found.needs_api, found.found_api) == ("12.1", "12.0")
    assert found.needs_driver == "530.41.03 / 531.61"
    assert diagnose(API.format("99.0", "12.0")).needs_driver is None


def test_drivers_rise_with_the_api():
    def key(text):
        return [int(part) for part in text.split(".")]

    apis = sorted(DRIVERS, key=key)
    linux = [key(DRIVERS[api][0]) for api in apis]
    assert linux == sorted(linux)


def test_software_works_here_and_every_row_answers():
    found = probe_codecs(environment={})
    assert [row.name for row in found.rows] == [each.name for each in TRIED]
    for row in found.rows:
        assert row.works == (row.frames_per_s is not None) == (row.why is None)
        if row.engine == "cpu":
            assert row.works and row.frames_per_s > 1
    assert all(found.use[codec] for codec in ("h264", "hevc", "av1"))


def test_the_command(capsys):
    assert run(["codecs"]) == 0
    out = capsys.readouterr().out
    assert "libx264" in out and "to write av1 use" in out
    assert max(map(len, out.splitlines())) <= 100
    assert run(["codecs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "cardfit.codecs/1"
