"""Steps after the pipeline and encoders of the card, in a plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cardfit
from cardfit.cli.flags import posts
from cardfit.errors import BadRequest
from cardfit.request import Post, Request, Settings, Upscale
from cardfit.request.read import read_plan_file

SDXL = {"model": "sdxl-base", "width": 1024, "height": 1024}


def test_an_upscaler_is_a_stage_with_its_own_peak_and_seconds() -> None:
    cards = ["rtx-3060-12gb", "rtx-4090"]
    settings = Settings(offload="none")
    plain = cardfit.plan(Request(**SDXL), settings, cards=cards)
    whole = Request(**SDXL, post=(Post(upscale=Upscale()),))
    found = cardfit.plan(whole, settings, cards=cards)
    assert [row.name for row in found.stages][-1] == "post"
    assert found.stages[-1].component == "realesrgan-x4plus"
    # 10 GiB at once at 1024 x 1024: the large card takes it, the pipeline alone would fit both
    assert found.stages[-1].allocated_bytes > 9e9
    before, after = ({row.card: row for row in answer.cards} for answer in (plain, found))
    assert after["rtx-4090"].verdict == before["rtx-4090"].verdict == "fits"
    assert after["rtx-4090"].seconds.likely > before["rtx-4090"].seconds.likely + 0.3
    assert {"plan-post-after", "plan-post-untiled"} <= {note.code for note in found.notes}
    tiled = cardfit.plan(
        Request(**SDXL, post=(Post(upscale=Upscale(tile=256, factor=2)),)), settings, cards=cards
    )
    assert tiled.stages[-1].allocated_bytes < 1e9
    assert "plan-post-resize" in {note.code for note in tiled.notes}


def test_a_card_that_holds_the_pipeline_and_not_the_upscaler_does_not_fit() -> None:
    large = Request(model="sdxl-base", width=1024, height=1024, post=(Post(upscale=Upscale()),) * 2)
    found = cardfit.plan(large, Settings(offload="none"), cards=["rtx-4090"])
    (row,) = found.cards
    assert row.verdict == "does_not_fit" and row.why.code == "plan-over-post"
    assert row.near_miss is not None and "tile=256" in row.near_miss.text


def test_an_export_that_the_card_cannot_do_is_said_before_the_run() -> None:
    asked = Request(model="wan2.1-t2v-1.3b", export="nvenc-h264")
    found = cardfit.plan(
        asked, Settings(offload="model"), cards=["a100-sxm-80gb", "h100-sxm", "rtx-4090"]
    )
    said = {note.code: note.text for note in found.notes}
    assert "A100" in said["plan-no-encoder"] and "H100" in said["plan-no-encoder"]
    assert "4090" not in said["plan-no-encoder"] and "--export h264" in said["plan-no-encoder"]
    assert "nothing worth having" in said["plan-export-small"]
    # the encoder's rate is in no table: an hour holds the runs at most, and what measures it is named
    most = re.search(r"at most ([\d.,]+) an hour", said["plan-throughput-nvenc"])
    (row,) = [each for each in found.cards if each.card == found.recommended.cheapest.card]
    assert most is not None and row.seconds is not None
    assert float(most[1].replace(",", "")) == pytest.approx(3600 / row.seconds.likely, rel=0.05)
    assert "cardfit codecs" in said["plan-throughput-nvenc"]
    cannot = cardfit.plan(asked, Settings(offload="model"), cards=["h100-sxm"])
    assert "plan-throughput-nvenc" not in {note.code for note in cannot.notes}
    # frames four times as wide and high: 25 GB of them twice on the host at export
    large = asked.model_copy(
        update={"post": (Post(upscale=Upscale(model="realesr-animevideov3")),)}
    )
    (row,) = cardfit.plan(large, Settings(offload="none"), cards=["rtx-4090"]).cards
    assert row.host_bytes > 2 * 16 * 81 * 832 * 480 * 12
    av1 = cardfit.plan(
        asked.model_copy(update={"export": "nvenc-av1"}),
        Settings(offload="model"),
        cards=["rtx-3090", "rtx-4090"],
    )
    text = {note.code: note.text for note in av1.notes}["plan-no-encoder"]
    assert "3090" in text and "4090" not in text
    image = cardfit.plan(
        Request(**SDXL, export="h264"), Settings(offload="none"), cards=["rtx-4090"]
    )
    assert "plan-export-image" in {note.code for note in image.notes}


@pytest.mark.parametrize(
    "word",
    [
        "",
        "upscale=",
        "upscale=esrgan",
        "tile=512",
        "upscale=realesrgan-x4plus,tile=-1",
        "upscale=realesrgan-x4plus,upscale=realesrgan-x2plus",
        "interpolate=rife",
    ],  # fmt: skip
)
def test_a_step_that_means_nothing(word: str) -> None:
    with pytest.raises(BadRequest, match="upscale=MODEL"):
        posts([word])


def test_a_plan_file_holds_steps(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "request:\n  model: sdxl-base\n  export: h264\n  post:\n    - upscale: {model: realesrgan-x2plus, tile: 512}\n"
    )
    found = read_plan_file(path).request
    assert found.post[0].upscale == Upscale(model="realesrgan-x2plus", tile=512)
    path.write_text("request:\n  model: sdxl-base\n  post:\n    - upscale: {model: topaz}\n")
    with pytest.raises(BadRequest, match="realesrgan-x4plus"):
        read_plan_file(path)
