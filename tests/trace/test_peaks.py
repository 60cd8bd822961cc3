"""Activation peaks of streams, nested calls included, by hand and against the replay."""

from __future__ import annotations

from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.predict.memory import estimate
from cardfit.request import ExactRequest, Request, Settings
from cardfit.trace.dryrun import dry_part
from cardfit.trace.peaks import Peaks
from cardfit.trace.stream import Binding, Event, Op, Stream, Trace


def _stream(events: list[Event], **more: object) -> Stream:
    fields: dict[str, object] = {
        "component": 0, "method": "m", "signature": "", "inputs": 0, "outputs": (), "bindings": (), "work": (),
    }  # fmt: skip
    return Stream(events=tuple(events), **{**fields, **more})  # type: ignore[arg-type]


def _trace(*streams: Stream) -> Trace:
    request = ExactRequest(
        model="m", task="text-to-image", width=64, height=64, num_frames=1, num_inference_steps=1,
        guidance_scale=1.0, prompt_tokens=1,
    )  # fmt: skip
    return Trace(
        request, Settings(), {}, "P", (), (), (), (), streams, (), (("", ""), ("op", "here"))
    )


def test_an_inner_call_stands_on_what_is_alive_and_may_let_an_input_go() -> None:
    inner = _stream(
        [
            (Op.DEATH, 0, 0, 0),  # its input of 100
            (Op.BIRTH, 1, 50, 0),
            (Op.WORKSPACE, 0, 30, 1),
        ],
        inputs=1,
        outputs=(1,),
    )
    outer = _stream(
        [
            (Op.BIRTH, 0, 100, 0),
            (Op.BIRTH, 1, 7, 0),
            (Op.CALL, 0, 0, 0),
            (Op.DEATH, 1, 0, 0),
            (Op.BIRTH, 3, 60, 1),
        ],
        bindings=(Binding((0,), (2,)),),
    )
    peaks = Peaks(_trace(inner, outer))
    assert peaks.of(0).bytes == 80
    assert peaks.of(1).bytes == 110  # 50 left by the call + 60; inside it 107 - 100 + 80 = 87
    assert peaks.of(1).site == 1


def test_the_peak_is_what_the_replay_allocates_above_weights_and_input() -> None:
    model = load("wan2.1-t2v-1.3b")
    request, _ = resolve(model, Request(model=model.id))
    trace = dry_part(model, request, Settings(), "vae", "decode", (1, 16, 4, 32, 32))
    whole = next(n for n, s in enumerate(trace.streams) if s.method == "decode")
    row = estimate(trace, Settings()).stages[1]
    assert row.name != "load"
    # the replay also rounds to 512 bytes, holds the latent and keeps cuBLAS's workspace
    more = row.activation_bytes - Peaks(trace).of(whole).bytes
    assert 0 <= more <= 9 * 1024**2
