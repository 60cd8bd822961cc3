"""Published times: cells, the rules that rebuild rows, and the figures made of scored rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from cardfit.accuracy.times import Order, ScoredTime, after_one_record, order, summed
from cardfit.accuracy.times_rebuild import NotTimed, WhyNotTimed, card_of, rebuild
from cardfit.accuracy.times_rows import COLUMNS, PublishedTime, read
from cardfit.errors import BadFile
from cardfit.messages import say
from cardfit.report.accuracy_times import lines, remarks, seconds_text
from cardfit.report.style import Style

DATA = Path(__file__).parents[2] / "benchmarks" / "data" / "times.csv"
PLAIN = {
    "model": "FLUX.1-dev", "card_id": "h100-any", "gpus": "1", "precision": "bf16", "width": "1024", "height": "1024",
    "frames": "1", "steps": "28", "batch": "1", "framework": "diffusers", "attention_compile": "eager",
    "value": "6.573", "unit": "s", "time_s": "6.573", "source": "somewhere", "notes": "",
}  # fmt: skip


def file_with(folder: Path, **cells: str) -> Path:
    row = {**PLAIN, **cells}
    path = folder / "times.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerow(row)
    return path


def one(folder: Path, **cells: str) -> PublishedTime:
    good, bad = read(file_with(folder, **cells))
    assert not bad
    return good[0]


def test_a_rate_becomes_seconds_of_a_step(tmp_path: Path) -> None:
    row = one(tmp_path, value="4", unit="it/s")
    assert row.seconds == pytest.approx(0.25)
    assert row.of == "step"
    assert row.id == "row-2"


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ({"value": "-3"}, "value"),
        ({"value": "soon"}, "value"),
        ({"unit": "fortnights"}, "unit"),
        ({"steps": "2.5"}, "steps"),
        ({"model": ""}, "model"),
    ],
)
def test_a_bad_cell_is_named(tmp_path: Path, cells: dict[str, str], column: str) -> None:
    good, bad = read(file_with(tmp_path, **cells))
    assert not good
    assert bad[0].column == column


def test_another_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadFile):
        read(path)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"gpus": "4"}, WhyNotTimed.MULTI_GPU),
        ({"framework": "TensorRT 9.0.1"}, WhyNotTimed.OTHER_RUNTIME),
        ({"width": ""}, WhyNotTimed.NO_SIZE),
        ({"steps": ""}, WhyNotTimed.NO_STEPS),
        ({"card_id": ""}, WhyNotTimed.NO_CARD),
        ({"card_id": "voodoo-2"}, WhyNotTimed.CARD_UNKNOWN),
        ({"model": "Nobody's model"}, WhyNotTimed.MODEL_UNKNOWN),
        ({"precision": "fp6"}, WhyNotTimed.SCHEME_UNKNOWN),
        ({"attention_compile": "SageAttention2-8b"}, WhyNotTimed.ATTENTION_UNKNOWN),
        ({"attention_compile": "sequential offload"}, WhyNotTimed.OFFLOAD_UNKNOWN),
        ({"notes": "LOW CONFIDENCE: made up"}, WhyNotTimed.SUSPECT),
    ],
)
def test_rows_that_cannot_be_rebuilt(
    tmp_path: Path, cells: dict[str, str], why: WhyNotTimed
) -> None:
    with pytest.raises(NotTimed) as refused:
        rebuild(one(tmp_path, **cells))
    assert refused.value.why is why
    assert say(f"accuracy-why-{why.value}")


def test_what_a_row_says_becomes_settings(tmp_path: Path) -> None:
    run = rebuild(
        one(
            tmp_path,
            precision="fp8 dynamic row",
            attention_compile="torch.compile + VAE, fused QKV",
        )
    )
    assert run.settings.compile
    assert run.settings.quantization == {"transformer": "torchao-fp8dq"}
    assert run.card.id == "h100-sxm"
    assert run.part == "run"


def test_flash_attention_3_holds_on_hopper_alone(tmp_path: Path) -> None:
    note = "FlashAttention3 on Hopper"
    wan = {"model": "Wan2.2-T2V-A14B", "frames": "81", "width": "832", "height": "480"}
    hopper = rebuild(one(tmp_path, **wan, notes=note))
    ampere = rebuild(one(tmp_path, **wan, notes=note, card_id="a100-80gb-any"))
    assert hopper.kernel == "flash3"
    assert ampere.kernel is None


def test_sdxl_decodes_in_fp32_and_sd15_as_loaded(tmp_path: Path) -> None:
    alone = {
        "precision": "fp16",
        "card_id": "rtx-3090",
        "width": "512",
        "height": "512",
        "steps": "",
    }
    sdxl = rebuild(one(tmp_path, model="SDXL VAE decode", **alone))
    sd15 = rebuild(one(tmp_path, model="SD1.5 VAE decode", **alone))
    assert sdxl.part == sd15.part == "decode"
    assert sdxl.settings.dtype == {"*": "float16", "vae": "float32"}
    assert sd15.settings.dtype == {"*": "float16"}


def test_export_variants_have_the_chip_they_are_made_of() -> None:
    assert card_of("a800-sxm-80gb").id == "a100-sxm-80gb"
    h20 = card_of("h20")
    assert h20.flop_per_s["bf16"] == 148e12
    assert h20.compute_capability == "9.0"


def scored(name: str, measured: float, predicted: float, **more: str) -> ScoredTime:
    fields = {"card": "a", "framework": "diffusers", "source": "s", "work": "w", **more}
    return ScoredTime(
        id=name,
        model="m",
        family="f",
        part="run",
        compiled=False,
        measured_s=measured,
        predicted_s=predicted,
        low_s=0.8 * predicted,
        high_s=1.2 * predicted,
        error_pct=round(100 * (predicted / measured - 1), 4),
        reached=0.5,
        **fields,
    )


def test_after_one_record_by_hand() -> None:
    rows = [scored("1", 10.0, 5.0), scored("2", 20.0, 12.0), scored("3", 7.0, 7.0, source="t")]
    assert after_one_record(rows) == pytest.approx([20.0, 100 * (5 / 3 * 5 / 10 - 1)], abs=1e-3)


def test_order_counts_pairs_that_differ() -> None:
    rows = [
        scored("1", 10.0, 9.0, card="a"),
        scored("2", 10.5, 8.0, card="b"),  # within a tenth of the first: no pair
        scored(
            "3", 20.0, 8.5, card="c"
        ),  # behind the first, predicted before it; behind the second
        scored("4", 90.0, 1.0, card="d", work="other"),
    ]
    assert order(rows) == Order(pairs=2, right=1)
    assert order([]).share is None


def test_the_page_shows_its_figures() -> None:
    rows = (scored("1", 10.0, 9.0), scored("2", 0.05, 0.1, card="b"))
    found = summed(rows, ())
    text = "\n".join(lines(found, Style(width=100, shapes=False)))
    assert "2 times scored" in text
    assert "+100.0 %" in text
    assert found.inside == 0.5
    assert not list(remarks(found))
    assert seconds_text(0.05) == "0.050 s"


def test_shipped_rows_can_be_read_and_every_skip_has_words() -> None:
    good, bad = read(DATA)
    assert len(good) > 200
    assert {each.column for each in bad} == {"unit"}
    for row in good:
        try:
            rebuild(row)
        except NotTimed as reason:
            assert say(f"accuracy-why-{reason.why.value}")


def test_held_errors_meet_the_goals() -> None:
    """What was fitted and kept: the figures that docs/times.md prints."""
    held = json.loads((DATA.parent / "times_errors.json").read_text())
    errors = sorted(abs(each) for each in held.values())
    assert len(errors) >= 60
    assert errors[len(errors) // 2] <= 12
    assert errors[int(0.9 * len(errors))] <= 35
