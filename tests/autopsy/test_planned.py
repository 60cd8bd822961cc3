"""With the request known: what the planner adds, on numbers that can be added up by hand.

Weights in GiB: text_encoder 10, transformer 26, vae 1. Working memory: denoise 8, decode 17 (4 in tiles).
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

from cardfit.autopsy import Case, as_stated, card_like, diagnose, read
from cardfit.autopsy.diagnose import matching
from cardfit.plan.knobs import closed
from cardfit.plan.search import Estimates
from cardfit.plan.verdict import Host
from cardfit.request import Settings
from cardfit.trace.stream import Op, Segment, Stream
from cardfit.units import GIB, MIB


def _load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = Path(__file__)
t = _load("texts", HERE.with_name("texts.py"))
paper = _load("paper", HERE.parents[1] / "plan" / "conftest.py")

DONE = "100%|####| 50/50 [10:00<00:00, 12.00s/it]\n"
FIRST = "  0%|    | 0/50 [00:00<?, ?it/s]\n"


def oom(tried: str, total: str = "48.00 GiB") -> str:
    return t.new(tried, total, "100.00 MiB", "47.00 GiB", "46.00 GiB", "100.00 MiB")


def case(settings: Settings | None = None, usable_gib: float = 48, **changes) -> Case:
    fields = {
        "request": paper.exact(),
        "settings": closed(settings or Settings()),
        "knobs": paper.knobs(),
        "estimates": paper.estimates(),
        "target": paper.target("a", usable_gib),
        "host": Host(),
    }
    return Case(**(fields | changes))


def test_each_cure_carries_its_new_peak_and_verdict():
    found = diagnose(read(DONE + oom("2.00 GiB")), case())
    peaks = {cure.code: cure.predicted for cure in found.cures if cure.predicted}
    assert found.as_run.reserved_bytes == 54 * GIB and found.as_run.verdict == "does_not_fit"
    assert peaks["model_offload"].reserved_bytes == 34 * GIB
    assert peaks["model_offload"].verdict == "fits"
    assert peaks["tiling"].reserved_bytes == 45 * GIB
    assert {cure.code for cure in found.cures if cure.predicted is None} >= {"latents_first"}


def test_the_cheapest_that_holds_is_planned_with_every_knob_open():
    found = diagnose(read(DONE + oom("2.00 GiB")), case(Settings(offload="none")))
    assert found.planned.settings.offload == "model"
    assert found.planned.predicted.reserved_bytes == 34 * GIB
    assert found.next_step.code == "autopsy-next-plan"
    assert found.next_step.text.endswith(
        "fake --width 1280 --height 720 --num-frames 81 --card a --as code"
    )


def test_what_is_turned_already_is_no_cure():
    ran = Settings(offload="group-leaf", vae_tiling=True)
    found = diagnose(read(DONE + oom("2.00 GiB")), case(ran, usable_gib=4))
    codes = {cure.code for cure in found.cures}
    assert not codes & {"model_offload", "group_offload", "tiling", "slicing"}


def test_a_denoiser_larger_than_the_card_is_named_as_the_cause():
    found = diagnose(read(FIRST + oom("64.00 MiB", "24.00 GiB")), case(usable_gib=23))
    assert (found.cause, found.confidence) == ("weights_do_not_fit", "sure")


def test_an_encoder_that_stays_is_named_where_it_decides():
    sized = case(usable_gib=44.6, estimates=Estimates(lambda s: paper.trace(s), _small_decode))
    found = diagnose(read(FIRST + oom("64.00 MiB")), sized)
    assert found.cause == "text_encoder_resident"
    assert found.evidence[-1].tells.args == {"size": "10.0 GiB", "over": "409.6 MiB"}


def _small_decode(traced, settings, architecture, limit):
    """As on paper, the decode in tiles: 37 + 8 GiB for denoising decide."""
    tiled = settings.model_copy(update={"vae_tiling": True})
    return paper.predict(traced, tiled, architecture, limit)


def test_without_a_card_the_peak_is_said_and_the_verdict_is_not():
    found = diagnose(read(DONE + "torch.OutOfMemoryError: Allocation on device"), case(target=None))
    assert found.as_run.verdict == "unknown" and found.as_run.reserved_bytes == 54 * GIB
    assert found.planned is None and found.card is None
    assert found.next_step.code == "autopsy-next-card"


def test_a_request_that_fits_by_the_dry_run_is_said_to():
    found = diagnose(read(DONE + oom("2.00 GiB", "80.00 GiB")), case(usable_gib=79))
    assert "autopsy-plan-disagrees" in [note.code for note in found.notes]


def test_nothing_is_planned_for_number_types():
    ran = case(estimates=None)
    found = diagnose(read("RuntimeError: expected scalar type Half but found Float"), ran)
    assert found.cause == "dtype" and [cure.code for cure in found.cures] == ["one_dtype"]


# --- a size that the dry run knows


def traced(settings=None):
    """A denoiser that asks for 1537.3 MiB, and with unfused attention for 30 GiB."""
    math = settings is not None and settings.attention == "math"
    size = 30 * GIB if math else round(1537.3 * MIB)
    stream = Stream(1, "forward", "x", 0, ((Op.BIRTH, 0, size, 0), (Op.DEATH, 0, 0, 0)), (), (), ())
    events = ((Op.STAGE, 1, 0, -1), (Op.CALL, 0, 0, -1))
    return replace(
        paper.trace(settings),
        streams=(stream,),
        timeline=(Segment(events, (), 50),),
        sites=(("attention" if math else "linear", "blocks.3.ffn"),),
    )


def test_a_size_is_found_as_it_is_printed():
    printed = round(1.50 * GIB)  # 1537.3 MiB is asked for as 1538: "1.50 GiB"
    assert [each.stage for each in matching(traced(), printed, "sdpa")] == ["denoise"]
    assert matching(traced(), printed + 16 * MIB, "sdpa") == ()
    assert matching(traced(), 1538 * MIB, "sdpa")[0].site == "blocks.3.ffn"


def test_the_stage_is_known_by_the_size_alone():
    ran = case(estimates=Estimates(traced, paper.predict), usable_gib=48)
    found = diagnose(read(oom("1.50 GiB")), ran)
    assert (found.stage, found.matches[0].component) == ("denoise", "transformer")


def test_unfused_attention_is_recognised_by_its_size():
    ran = case(estimates=Estimates(traced, paper.predict), usable_gib=48)
    found = diagnose(read(FIRST + oom("30.00 GiB")), ran)
    assert (found.cause, found.confidence) == ("attention", "sure")
    assert found.matches[0].attention == "math"


# --- the card behind a capacity


def test_the_card_with_the_nearest_capacity_is_taken():
    cards = [paper.target("a", 23.0), paper.target("b", 31.0)]
    numbers = read(oom("1.00 GiB", "31.40 GiB")).numbers
    assert card_like(numbers, cards).card == "b"
    assert card_like(read(oom("1.00 GiB", "99.00 GiB")).numbers, cards) is None
    assert card_like(read("Killed\n").numbers, cards) is None


def test_the_stated_capacity_and_context_replace_the_catalog_s():
    text = t.new("1.00 GiB", "24.00 GiB", "2.00 GiB", "20.00 GiB", "18.00 GiB", "1.50 GiB")
    stated = as_stated(paper.target("a", 23.0), read(text).numbers)
    assert stated.context.likely == GIB // 2  # 20 in use, 19.5 of it reserved
    assert stated.total.likely == 22 * GIB  # 2 of 24 are others'
    assert stated.usable.likely == round(21.5 * GIB)
