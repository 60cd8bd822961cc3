"""A verdict follows from the peak against what is usable."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.plan.target import Band
from cardfit.plan.verdict import ORDER, Host, grade, judge, judge_limited, needs_limit
from cardfit.predict.estimate import HostMoment, MemoryEstimate


def one(fakes: SimpleNamespace, peak_gib: float, **changes: float) -> MemoryEstimate:
    return fakes.estimate((fakes.stage("denoise", "transformer", 0, peak_gib),), **changes)


def usable(fakes: SimpleNamespace, low: float, likely: float, high: float) -> Band:
    return Band(fakes.gib(low), fakes.gib(likely), fakes.gib(high))


def test_fits_when_the_high_end_is_inside_what_is_sure(fakes: SimpleNamespace) -> None:
    # 20 GiB + 2 % = 20.4 GiB
    found = judge(one(fakes, 20), usable(fakes, 20.4, 21, 21.5), Host())
    assert (found.verdict, found.over_bytes) == ("fits", 0)
    assert found.headroom_bytes == fakes.gib(1)


def test_tight_when_only_the_likely_figure_is_inside(fakes: SimpleNamespace) -> None:
    assert judge(one(fakes, 20), usable(fakes, 20.3, 21, 21.5), Host()).verdict == "tight"
    assert judge(one(fakes, 20), usable(fakes, 19, 20, 21.5), Host()).verdict == "tight"


def test_over_names_the_deficit(fakes: SimpleNamespace) -> None:
    found = judge(one(fakes, 20), usable(fakes, 17, 18, 19), Host())
    assert (found.verdict, found.reason, found.over_bytes) == (
        "does_not_fit",
        "device",
        fakes.gib(2),
    )


def test_host_ram_is_a_wall_too(fakes: SimpleNamespace) -> None:
    room = usable(fakes, 40, 40, 40)
    short = judge(one(fakes, 20, host_gib=48), room, Host(fakes.gib(32)))
    assert (short.verdict, short.reason, short.over_bytes) == (
        "does_not_fit",
        "host",
        fakes.gib(16),
    )
    assert judge(one(fakes, 20, host_gib=48), room, Host(fakes.gib(48))).verdict == "fits"
    assert judge(one(fakes, 20, host_gib=48), room, Host(None)).verdict == "fits"


def moment(fakes: SimpleNamespace, likely: float, high: float, mapped: float = 0) -> HostMoment:
    low, parts = fakes.gib(1), (("process", fakes.gib(likely)),)
    return HostMoment("run", low, fakes.gib(likely), fakes.gib(high), fakes.gib(mapped), parts)


def test_host_ram_may_be_tight(fakes: SimpleNamespace) -> None:
    room = usable(fakes, 40, 40, 40)
    found = replace(one(fakes, 20, host_gib=48), host=(moment(fakes, 48, 50),))
    close = judge(found, room, Host(fakes.gib(49)))
    assert (close.verdict, close.reason, close.over_bytes) == ("tight", "host_likely", 0)
    assert judge(found, room, Host(fakes.gib(50))).verdict == "fits"
    assert judge(found, room, Host(fakes.gib(47))).verdict == "does_not_fit"


def test_windows_counts_mapped_files_as_committed(fakes: SimpleNamespace) -> None:
    room = usable(fakes, 40, 40, 40)
    found = replace(one(fakes, 20, host_gib=4), host=(moment(fakes, 4, 5, mapped=30),))
    assert judge(found, room, Host(fakes.gib(32), "linux")).verdict == "fits"
    assert judge(found, room, Host(fakes.gib(32), "windows")).verdict == "tight"
    assert judge(found, room, Host(fakes.gib(34), "windows")).verdict == "fits"


def test_the_disk_is_a_wall(fakes: SimpleNamespace) -> None:
    room = usable(fakes, 40, 40, 40)
    found = replace(one(fakes, 20), offload_disk_bytes=fakes.gib(30))
    host = Host(disk_bytes=fakes.gib(60), files_bytes=fakes.gib(31))
    short = judge(found, room, host)
    assert (short.verdict, short.reason, short.over_bytes) == (
        "does_not_fit",
        "disk",
        fakes.gib(1),
    )
    assert judge_limited(found, room, host) is None
    assert judge(found, room, Host(files_bytes=fakes.gib(31))).verdict == "fits"  # nobody knows
    assert judge(one(fakes, 20), room, host).verdict == "fits"


def test_windows_spills_into_half_of_the_ram_when_it_is_known(fakes: SimpleNamespace) -> None:
    room = usable(fakes, 12, 12, 12)
    assert judge(one(fakes, 20), room, Host(fakes.gib(16), "windows")).verdict == "spills"
    assert judge(one(fakes, 20), room, Host(fakes.gib(15), "windows")).verdict == "does_not_fit"
    assert judge(one(fakes, 20), room, Host(None, "windows")).verdict == "does_not_fit"
    assert judge(one(fakes, 20), room, Host(fakes.gib(16), "linux")).verdict == "does_not_fit"


def test_a_replay_at_the_limit_makes_it_tight_at_best(fakes: SimpleNamespace) -> None:
    room = usable(fakes, 20.5, 20.5, 20.5)
    cached = one(fakes, 20, cached_gib=3)  # allocated 20, reserved 23
    over = judge(cached, room, Host())
    assert over.verdict == "does_not_fit"
    assert needs_limit(over)
    found = judge_limited(one(fakes, 20), room, Host())
    assert found is not None and (found.verdict, found.reason) == ("tight", "with_limit")
    assert judge_limited(cached, room, Host()) is None
    assert judge_limited(one(fakes, 20, host_gib=9), room, Host(fakes.gib(8))) is None
    assert not needs_limit(judge(one(fakes, 22), room, Host()))


def test_grades() -> None:
    assert grade("fits", ()) == "green"
    assert grade("fits", ("slower",)) == grade("tight", ()) == grade("spills", ()) == "amber"
    assert grade("does_not_fit", ()) == "red"
    assert grade("unknown", ()) is None


sizes = st.integers(min_value=1, max_value=10**12)


@settings(deadline=None)
@given(
    peak=sizes, cached=st.integers(0, 10**11), low=sizes, more=st.integers(0, 10**11), extra=sizes
)
def test_a_larger_card_never_turns_a_fit_into_a_miss(
    fakes: SimpleNamespace, peak: int, cached: int, low: int, more: int, extra: int
) -> None:
    estimate = one(fakes, peak / 2**30, cached_gib=cached / 2**30)
    small, large = (
        Band(low, low + more, low + 2 * more),
        Band(low + extra, low + more + extra, 4 * 10**12),
    )
    verdicts = [judge(estimate, room, Host()).verdict for room in (small, large)]
    assert ORDER.index(verdicts[1]) <= ORDER.index(verdicts[0])


@settings(deadline=None)
@given(peak=sizes, low=sizes, more=st.integers(0, 10**11))
def test_the_verdict_can_be_read_from_the_figures(
    fakes: SimpleNamespace, peak: int, low: int, more: int
) -> None:
    estimate = one(fakes, peak / 2**30)
    room = Band(low, low + more, low + 2 * more)
    found = judge(estimate, room, Host())
    assert (found.verdict == "does_not_fit") == (found.headroom_bytes < 0)
    inside = estimate.reserved_high_bytes <= room.low
    assert (found.verdict == "fits") == (inside and found.headroom_bytes >= 0)
