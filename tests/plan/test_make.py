"""The whole answer from fakes."""

from __future__ import annotations

from types import SimpleNamespace

from cardfit.plan.answer import Answer
from cardfit.plan.bill import Use
from cardfit.plan.make import make, uses_bfloat16
from cardfit.plan.verdict import Host
from cardfit.request import Settings


def build(fakes: SimpleNamespace, given: Settings, *targets: object, **options: object) -> Answer:
    return make(
        fakes.exact(),
        given,
        targets,  # type: ignore[arg-type]
        Host(),
        fakes.knobs(),
        fakes.estimates(),
        fakes.facts(),
        **options,  # type: ignore[arg-type]
    )


def test_stages_and_peak_are_for_everything_resident(fakes: SimpleNamespace) -> None:
    found = build(fakes, Settings(), fakes.target("small", 11))
    assert [(row.name, row.allocated_bytes) for row in found.stages] == [
        ("encode_prompt", fakes.gib(38)),
        ("denoise", fakes.gib(45)),
        ("decode", fakes.gib(54)),
    ]
    for stage in found.stages:
        assert stage.weights_bytes + stage.activation_bytes == stage.allocated_bytes
    assert (found.peak.reserved_bytes, found.peak.stage) == (fakes.gib(54), "decode")
    assert found.peak.device_bytes == fakes.gib(54.5)
    assert found.one_at_a_time is not None
    assert found.one_at_a_time.reserved_bytes == fakes.gib(34)
    assert found.one_at_a_time_host_bytes == fakes.gib(37)


def test_given_settings_hold_for_the_stages_too(fakes: SimpleNamespace) -> None:
    found = build(fakes, Settings(offload="model", vae_tiling=True), fakes.target("card", 40))
    assert found.peak.stage == "denoise"
    assert found.peak.reserved_bytes == fakes.gib(34)
    assert found.one_at_a_time is None


def test_no_settings_of_a_row_are_left_open(fakes: SimpleNamespace) -> None:
    found = build(fakes, Settings(), *(fakes.target(f"c{size}", size) for size in (6, 11, 20, 60)))
    for row in found.cards:
        assert row.settings is not None
        assert None not in (row.settings.offload, row.settings.vae_tiling, row.settings.vae_slicing)


def test_the_answer_is_its_own_json(fakes: SimpleNamespace) -> None:
    found = build(
        fakes, Settings(), fakes.target("card", 60, price=1.0), use=Use(outputs_per_month=40)
    )
    again = Answer.model_validate_json(found.model_dump_json(by_alias=True))
    assert again == found
    assert "plan-outputs-no-seconds" in [note.code for note in found.notes]


def test_progress_names_the_cards(fakes: SimpleNamespace) -> None:
    said: list[tuple[str, float | None]] = []
    build(
        fakes,
        Settings(),
        fakes.target("a", 20),
        fakes.target("b", 60),
        progress=lambda what, share: said.append((what, share)),
    )
    assert [each for each in said if not each[0].startswith("memory")] == [("B", 0.0), ("A", 0.5)]
    replays = [each for each in said if each[0].startswith("memory, replay")]
    assert replays[0] == ("memory, replay 2 (group offload by block): card 2 of 2", 0.5)


def test_bfloat16_is_seen_in_the_trace(fakes: SimpleNamespace) -> None:
    assert uses_bfloat16(fakes.trace())
    assert not uses_bfloat16(fakes.trace(dtype="float16"))
