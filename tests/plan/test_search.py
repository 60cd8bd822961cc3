"""Each card gets the least costly settings that hold; nothing is traced before some card needs it."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.plan.knobs import candidates, closed
from cardfit.plan.search import Choice, Estimates, architecture_class, choose
from cardfit.plan.verdict import ORDER, Host
from cardfit.predict.estimate import Failure, MemoryEstimate
from cardfit.request import OFFLOADS, Offload, Settings
from cardfit.trace.stream import Trace


def pick(
    fakes: SimpleNamespace,
    usable_gib: float,
    settings: Settings | None = None,
    host: Host | None = None,
    estimates: Estimates | None = None,
) -> Choice:
    card = fakes.target("card", usable_gib)
    options = candidates(settings or Settings(), fakes.knobs())
    memo = estimates or fakes.estimates()
    return choose(options, card, card.usable, host or Host(), memo)


def test_a_card_that_holds_everything_turns_no_knob(fakes: SimpleNamespace) -> None:
    # 10 + 26 + 1 + 17 = 54 GiB, 2 % more at most: 55.08
    found = pick(fakes, 55.1)
    assert found.candidate.settings == closed(Settings())
    assert found.judgement.headroom_bytes == fakes.gib(55.1) - fakes.gib(54)


def test_the_least_costly_offload_is_taken(fakes: SimpleNamespace) -> None:
    # model: denoise 26 + 8 = 34; group by block: decode 0.1 + 17 = 17.1, denoise 2.6 + 8
    assert pick(fakes, 35).candidate.settings.offload == "model"
    block = pick(fakes, 17.5)
    assert block.candidate.settings.offload == "group-block"
    assert block.judgement.estimate.peak_stage == "decode"
    # by leaf: 0.05 + 17 = 17.05 GiB, with the band 17.391
    assert pick(fakes, 17.4).candidate.settings.offload == "group-leaf"


def test_tiles_come_when_no_offload_helps(fakes: SimpleNamespace) -> None:
    found = pick(fakes, 11)  # tiled, by block: denoise 2.6 + 8 = 10.6 -> 10.812
    assert found.candidate.settings.vae_tiling is True
    assert found.candidate.settings.offload == "group-block"
    assert found.candidate.price == ("slower", "lossy")


def test_without_offload_it_takes_fewer_bits(fakes: SimpleNamespace) -> None:
    # fp8 on the denoiser: 54 - 13 = 41; int8 on both: 5 + 13 + 1 + 17 = 36
    assert pick(fakes, 37, Settings(offload="none", vae_tiling=False)).candidate.settings == closed(
        Settings(
            offload="none",
            vae_tiling=False,
            quantization={"transformer": "bnb-int8", "text_encoder": "bnb-int8"},
        )
    )


def test_a_host_short_of_ram_takes_the_lossy_way(fakes: SimpleNamespace) -> None:
    found = pick(fakes, 35, host=Host(fakes.gib(16)))
    assert found.candidate.settings.offload == "none"
    assert "lossy" in found.candidate.price


def test_tight_only_when_nothing_fits(fakes: SimpleNamespace) -> None:
    # tiled, by leaf or in sequence, takes 8.52 to 9.3 GiB: 8.6 holds the last one, band 8.69 does not
    found = pick(fakes, 8.6)
    assert found.judgement.verdict == "tight"
    assert found.candidate.settings.offload == "sequential"


def test_a_miss_shows_the_nearest_settings(fakes: SimpleNamespace) -> None:
    found = pick(fakes, 6)
    assert found.judgement.verdict == "does_not_fit"
    # in sequence and tiled: 0.52 + 8 = 8.52 GiB
    assert found.judgement.over_bytes == fakes.gib(8.52) - fakes.gib(6)


def test_windows_spills_where_linux_fails(fakes: SimpleNamespace) -> None:
    host = Host(fakes.gib(64), "windows")
    assert pick(fakes, 6, host=host).judgement.verdict == "spills"


def test_tilings_are_traced_only_when_a_card_needs_them(fakes: SimpleNamespace) -> None:
    calls: list[Settings] = []
    memo = fakes.estimates(calls)
    for size in (60, 36, 18):
        pick(fakes, size, estimates=memo)
    assert [each.vae_tiling for each in calls] == [False]
    pick(fakes, 11, estimates=memo)
    assert [each.vae_tiling for each in calls] == [False, True]


def test_hopeless_traces_are_left_out_early(fakes: SimpleNamespace) -> None:
    asked: list[Settings] = []

    def predict(
        traced: Trace, settings: Settings, kind: str | None, limit: int | None
    ) -> MemoryEstimate:
        asked.append(settings)
        return fakes.predict(traced, settings, kind, limit)

    pick(fakes, 6, estimates=Estimates(lambda settings: fakes.trace(settings), predict))
    # everything resident shows 8 GiB of activations while denoising: only the least of all is tried
    assert [(each.offload, each.vae_tiling) for each in asked] == [
        ("none", False),
        ("sequential", True),
    ]


def test_a_replay_at_the_limit_is_asked_for_once_and_only_in_between(
    fakes: SimpleNamespace,
) -> None:
    limits: list[int | None] = []

    def predict(
        traced: Trace, settings: Settings, kind: str | None, limit: int | None
    ) -> MemoryEstimate:
        limits.append(limit)
        stages = (fakes.stage("denoise", "transformer", 10, 10),)
        return fakes.estimate(stages, cached_gib=4 if limit is None else 0.5)

    memo = Estimates(lambda settings: fakes.trace(settings), predict)
    given = Settings(offload="none", vae_tiling=False, quantization={"vae": "none"})
    found = pick(fakes, 21, given, estimates=memo)
    assert (found.judgement.verdict, found.judgement.reason) == ("tight", "with_limit")
    assert limits == [None, fakes.gib(21)]
    assert pick(fakes, 19, given, estimates=memo).judgement.verdict == "does_not_fit"
    assert limits == [None, fakes.gib(21)]


def test_a_replay_that_ends_keeps_the_miss(fakes: SimpleNamespace) -> None:
    failure = Failure("denoise", "transformer", "block 0", 1, 2, 3, 4)

    def predict(
        traced: Trace, settings: Settings, kind: str | None, limit: int | None
    ) -> MemoryEstimate:
        stages = (fakes.stage("denoise", "transformer", 10, 10),)
        ends = None if limit is None else failure
        return fakes.estimate(stages, cached_gib=0 if limit else 4, failure=ends)

    memo = Estimates(lambda settings: fakes.trace(settings), predict)
    assert (
        pick(fakes, 21, Settings(offload="none"), estimates=memo).judgement.verdict
        == "does_not_fit"
    )


def test_architectures_share_estimates_before_hopper() -> None:
    assert (
        architecture_class("Ampere")
        is architecture_class("Turing")
        is architecture_class("")
        is None
    )
    assert architecture_class("Blackwell") == "Blackwell"


@settings(deadline=None)
@given(small=st.floats(0.5, 80), more=st.floats(0, 80))
def test_a_larger_card_is_never_worse_off(
    fakes: SimpleNamespace, small: float, more: float
) -> None:
    first, second = pick(fakes, small), pick(fakes, small + more)
    order = [ORDER.index(each.judgement.verdict) for each in (first, second)]
    assert order[1] <= order[0]
    if order[0] == order[1] == 0:
        assert second.candidate.cost <= first.candidate.cost


@settings(deadline=None)
@given(offload=st.sampled_from(OFFLOADS), tiled=st.booleans())
def test_offload_never_raises_the_peak(
    fakes: SimpleNamespace, offload: Offload, tiled: bool
) -> None:
    memo = fakes.estimates()
    plain = memo.of(closed(Settings(vae_tiling=tiled)))
    assert (
        memo.of(closed(Settings(vae_tiling=tiled, offload=offload))).reserved_bytes
        <= plain.reserved_bytes
    )
