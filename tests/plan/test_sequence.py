"""The answer for a sequence: the worst case, each request, and cards that live through it or do not."""

from __future__ import annotations

from dataclasses import replace

from cardfit.plan.sequence import Mix, SequenceAnswer, make_sequence
from cardfit.plan.target import Band, Target
from cardfit.predict.memory import bands
from cardfit.predict.sequence import MAX_REPLAYS, Planned, Process
from cardfit.report.sequence import lines
from cardfit.report.style import Style
from cardfit.request import ExactRequest, Settings
from cardfit.trace.stream import Binding, Component, Event, Module, Op, Segment, Stream, Trace
from cardfit.units import GIB, MIB

REQUEST = ExactRequest(
    model="tiny",
    task="text-to-image",
    width=64,
    height=32,
    num_frames=1,
    num_inference_steps=2,
    guidance_scale=1.0,
    prompt_tokens=8,
)


def trace(*sizes_mib: int) -> Trace:
    """1 GiB of weights; tensors of these sizes live one after another."""
    events: list[Event] = []
    for number, size in enumerate(sizes_mib):
        events += [
            (int(Op.BIRTH), number, size * MIB, 1),
            (int(Op.DEATH), number, 0, 0),
        ]
    weights = Module("layer", "Linear", (("weight", GIB, "bfloat16"),), linear=True)
    call = tuple((int(op), 0, 0, 0) for op in (Op.STAGE, Op.ON, Op.CALL, Op.OFF))
    return Trace(
        request=REQUEST,
        settings=Settings(),
        versions={"torch": "2"},
        pipeline="Fake",
        offload_sequence=("vae",),
        components=(Component("vae", "Fake", "bfloat16", (Module("", "Fake", ()), weights)),),
        recasts=(),
        stages=(("decode", "vae"),),
        streams=(Stream(0, "forward", "", 0, tuple(events), (), (), ()),),
        timeline=(Segment(call, (Binding((), ()),)),),
        sites=(("start", ""), ("conv", "up")),
    )


def target(usable_mib: int, name: str = "Card") -> Target:
    total = usable_mib * MIB
    return Target(
        card=name.lower(),
        name=name,
        memory_bytes=total,
        architecture="Ampere",
        compute_capability=8.6,
        total=Band(total, total, total),
        context=Band(0, 0, 0),
        offers=(),
        unverified=None,
    )


def answer(*usable_mib: int, order: tuple[int, ...] = (0, 1, 0, 1)) -> SequenceAnswer:
    traces = trace(400), trace(500)
    mix = Mix(
        requests=tuple(each.request for each in traces),
        counts=tuple(order.count(number) for number in range(2)),
        planned=tuple(Planned("tiny", each) for each in traces),
        order=order,
        process=Process(Settings(offload="none")),
    )
    return make_sequence(mix, [target(each) for each in usable_mib], versions={"torch": "2"})


def test_the_worst_case_comes_with_the_second_request() -> None:
    found = answer()
    worst = found.worst
    assert (worst.position, worst.number, worst.stage) == (2, 2, "decode")
    assert worst.reserved_bytes == (1024 + 400 + 500) * MIB
    assert worst.alone_reserved_bytes == (1024 + 500) * MIB
    assert worst.low_bytes <= worst.reserved_bytes <= worst.high_bytes
    assert [row.alone_reserved_bytes // MIB for row in found.requests] == [1424, 1524]
    assert [row.reserved_bytes for row in found.requests] == [worst.reserved_bytes] * 2
    # the first reaches the worst in its second turn, with what was left to it
    assert [(row.position, row.stage) for row in found.requests] == [(3, "before"), (2, "decode")]
    assert (found.count, found.replayed) == (4, 4) and found.notes == ()


def test_verdicts_follow_from_the_worst_case() -> None:
    high = round(1924 * (1 + bands()["high"])) + 1
    found = answer(high, 1924, 1600, 1300, 900)
    assert [card.verdict for card in found.cards] == [
        "fits",
        "fits" if bands()["high"] == 0 else "tight",
        "tight",  # the card is full, the 400 are freed and the 500 fit
        "does_not_fit",
        "does_not_fit",
    ]
    failed = [card.failed for card in found.cards]
    assert failed[:3] == [None] * 3
    assert failed[3] is not None and failed[4] is not None
    assert (failed[3].position, failed[3].stage) == (1, "decode")
    assert failed[3].tried_bytes == 400 * MIB
    assert "Would fail in decode: tried to allocate 400.0 MiB" in failed[3].said.text
    assert failed[4].stage == "load"
    assert found.cards[3].why.text.startswith("Ends at request 1 of 4")
    # 1024 + 400 are over 1300 with any allocator
    assert found.cards[3].cure is None


def test_a_card_that_ends_later_is_told_when() -> None:
    found = answer(1500, order=(0, 0, 0, 1, 0))
    failed = found.cards[0].failed
    assert failed is not None
    assert (failed.position, failed.number) == (4, 2)


def test_expandable_segments_are_named_where_a_replay_with_them_gets_through() -> None:
    """12 MiB of the second request lie in the freed segment of 400, so 1040 + 400 + 420 would be reserved."""
    events: tuple[Event, ...] = (
        (int(Op.BIRTH), 0, 400 * MIB, 1),
        (int(Op.DEATH), 0, 0, 0),
        (int(Op.BIRTH), 1, 12 * MIB, 1),
        (int(Op.BIRTH), 2, 420 * MIB, 1),
        (int(Op.DEATH), 1, 0, 0),
        (int(Op.DEATH), 2, 0, 0),
    )
    base = trace(1)
    stream = base.streams[0]
    one = replace(base, streams=(Stream(0, "forward", "", 0, events, (), (), stream.work),))
    mix = Mix((REQUEST,), (1,), (Planned("tiny", one),), (0,), Process(Settings(offload="none")))
    found = make_sequence(mix, [target(1500)], versions={})
    card = found.cards[0]
    assert card.verdict == "does_not_fit"
    assert card.cure is not None and "expandable_segments:True" in card.cure.text


def test_what_was_not_replayed_is_said() -> None:
    count = MAX_REPLAYS + 3
    traces = tuple(trace(20 + 2 * number) for number in range(count))
    mix = Mix(
        (REQUEST,) * count,
        (1,) * count,
        tuple(Planned("tiny", each) for each in traces),
        tuple(range(count)),
        Process(Settings(offload="none")),
    )
    found = make_sequence(mix, [], versions={})
    assert found.replayed < found.count == count
    assert [note.code for note in found.notes] == ["sequence-not-all"]
    assert found.requests[-1].reserved_bytes is None


def test_the_page_shows_the_worst_case_the_requests_and_the_cards() -> None:
    page = lines(answer(4000, 1300), Style())
    text = "\n".join(page)
    assert "4 requests in one process reserve 1.9 GiB at the worst" in text
    assert "from request 2 on" in text
    assert "kept from before" in text
    assert "● Reserves" in text and "○ Ends at request 1 of 4" in text
    assert max(map(len, page)) <= 100
