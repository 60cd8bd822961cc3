"""What a knob cost the picture, from records that were compared."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from cardfit.plan.knobs import Knobs, candidates
from cardfit.records import files
from cardfit.records.costs import quality_costs
from cardfit.records.models import Quality
from cardfit.request import Settings

_spec = importlib.util.spec_from_file_location(
    "make_record", Path(__file__).with_name("make_record.py")
)
assert _spec is not None and _spec.loader is not None
make_record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_record)

REFERENCE = make_record.record()
FP8 = {"transformer": "fp8-layerwise"}


def keep(folder: Path, ssim: float, diverged: bool = False, **settings: Any) -> None:
    quality = Quality(
        reference=REFERENCE.id,
        frames=1,
        psnr_db=30.0,
        ssim=ssim,
        ssim_lowest=ssim,
        diverged=diverged,
    )
    files.write(make_record.record(settings=Settings(**settings), quality=quality), folder)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CARDFIT_DATA", str(tmp_path))
    base = files.records_folder()
    files.write(REFERENCE, base)
    for ssim in (0.90, 0.88, 0.89):
        keep(base, ssim, vae_tiling=True, offload="model")
    keep(base, 0.98, quantization=FP8)
    keep(base, 0.20, diverged=True, quantization={"transformer": "bnb-nf4"})
    keep(base, 0.95, quantization=FP8, decode_chunk_size=2)  # two at once: whose doing is it?
    keep(base, 0.97, dtype={"*": "float16"}, vae_tiling=True, vae_tile=128)
    (base / "broken").mkdir()
    (base / "broken" / "record.json").write_text("{")
    return base


def test_a_knob_costs_the_median_of_the_records_where_it_alone_differs(folder: Path) -> None:
    found = quality_costs("flux.1-dev", folder)
    assert found == {
        "vae_tiling": pytest.approx(0.11),
        "quantization transformer=fp8-layerwise": pytest.approx(0.02),
    }
    assert quality_costs("svd", folder) == {} == quality_costs("flux.1-dev", folder / "none")


def test_a_plan_orders_measured_knobs_and_leaves_the_others(folder: Path) -> None:
    plain = Knobs(denoisers=("transformer",), text_encoders=(), tile=1024)
    costs = tuple(quality_costs("flux.1-dev", folder).items())
    asked = Settings(offload="none")
    before = [each.settings for each in candidates(asked, plain)]
    after = [
        each.settings
        for each in candidates(asked, Knobs(("transformer",), (), tile=1024, measured=costs))
    ]

    def words(each: Settings) -> tuple[bool, str]:
        return bool(each.vae_tiling), next(iter(each.quantization.values()), "none")

    tiled, fp8, both = (True, "none"), (False, "fp8-layerwise"), (True, "fp8-layerwise")
    assert [words(each) for each in before][:4] == [(False, "none"), tiled, fp8, both]
    assert [words(each) for each in after][:4] == [(False, "none"), fp8, tiled, both]
    assert before[4:] == after[4:] and sorted(map(str, before)) == sorted(map(str, after))


def test_the_answer_says_that_the_order_is_measured(folder: Path) -> None:
    import cardfit

    found = cardfit.plan("flux.1-dev", cards=["rtx-4090"])
    (said,) = [note.text for note in found.notes if note.code == "plan-quality-measured"]
    assert "fp8-layerwise 0.020, vae_tiling 0.110" in said
    other = cardfit.plan("sdxl-base", cards=["rtx-4090"])
    assert "plan-quality-measured" not in {note.code for note in other.notes}
