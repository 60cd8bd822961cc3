"""What the search takes for granted is never more than a replay finds."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.plan.floor import floor_bytes, reference
from cardfit.plan.knobs import candidates, closed
from cardfit.plan.search import Estimates, choose
from cardfit.plan.verdict import Host
from cardfit.request import Settings
from cardfit.units import MIB


def floor(fakes: SimpleNamespace, turned: Settings) -> int:
    known = closed(Settings())
    memo = fakes.estimates()
    return floor_bytes(closed(turned), known, memo.trace(known), memo.of(known))


def test_floors_by_hand(fakes: SimpleNamespace) -> None:
    # weights 10 + 26 + 1, activations 1, 8 and 17
    rounding = 3 * 512  # three weights
    assert floor(fakes, Settings()) == fakes.gib(54)
    assert floor(fakes, Settings(offload="model")) == fakes.gib(26)
    assert floor(fakes, Settings(offload="sequential")) == fakes.gib(17) - rounding
    # with tiles nothing is known of decoding: denoising is left, 8
    assert floor(fakes, Settings(offload="sequential", vae_tiling=True)) == fakes.gib(8) - rounding
    # nf4 takes half a byte where bfloat16 took two: 10 + 6.5 + 1 + 17
    nf4 = Settings(quantization={"transformer": "bnb-nf4"})
    assert floor(fakes, nf4) == fakes.gib(34.5) - rounding


def test_a_floor_is_never_above_the_replay(fakes: SimpleNamespace) -> None:
    memo = fakes.estimates()
    options = candidates(Settings(), fakes.knobs())
    known = reference(options)
    assert known == closed(Settings())
    for each in options:
        found = floor_bytes(each.settings, known, memo.trace(known), memo.of(known))
        assert found <= memo.of(each.settings).allocated_bytes, each.settings


def test_a_peak_inside_a_module_stands_on_the_whole_component(fakes: SimpleNamespace) -> None:
    stages = (replace(fakes.stage("denoise", "transformer", 37, 8), site="mul in blocks.0"),)
    known = closed(Settings())
    moved = closed(Settings(offload="model"))
    found = floor_bytes(moved, known, fakes.trace(), fakes.estimate(stages))
    assert found == fakes.gib(26 + 8) - 3 * 512


def test_without_full_weights_there_is_no_reference(fakes: SimpleNamespace) -> None:
    given_ = Settings(quantization={"transformer": "bnb-int8"})
    assert reference(candidates(given_, fakes.knobs())) is None


@settings(deadline=None, max_examples=30)
@given(sizes=st.lists(st.floats(4, 90), min_size=40, max_size=60))
def test_a_catalog_takes_few_replays(fakes: SimpleNamespace, sizes: list[float]) -> None:
    counted: list[Settings] = []
    memo: Estimates = fakes.estimates()
    memo.replayed = lambda count, turned: counted.append(turned)
    options = candidates(Settings(), fakes.knobs())
    for size in sorted(sizes, reverse=True):
        card = fakes.target("card", size)
        choose(options, card, card.usable, Host(), memo)
    assert len(options) == 26
    assert len(counted) <= 16


def test_a_later_card_is_replayed_only_where_its_workspace_decides(fakes: SimpleNamespace) -> None:
    kinds: list[str | None] = []

    def predict(traced: object, turned: Settings, kind: str | None, limit: int | None) -> object:
        kinds.append(kind)
        return fakes.predict(traced, turned, kind, limit)

    memo = Estimates(lambda turned: fakes.trace(turned), predict)
    options = candidates(Settings(), fakes.knobs())
    high = 54 * 1.02
    for size in (high + 1, high + 0.01):
        card = fakes.target("card", size, architecture="Hopper")
        choose(options, card, card.usable, Host(), memo)
    assert kinds == [None, "Hopper"]
    assert fakes.gib(0.01) < 32 * MIB
