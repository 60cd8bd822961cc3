"""A row's figures carry its verdict; a red row says what would cure it."""

from __future__ import annotations

from types import SimpleNamespace

from cardfit.errors import Note
from cardfit.plan.knobs import candidates
from cardfit.plan.rows import Question, Ranked, row_for
from cardfit.plan.search import Estimates
from cardfit.plan.target import Target
from cardfit.plan.verdict import Host
from cardfit.predict.estimate import MemoryEstimate
from cardfit.request import Settings
from cardfit.trace.stream import Trace


def ask(
    fakes: SimpleNamespace,
    target: Target,
    settings: Settings | None = None,
    host: Host | None = None,
    bfloat16: bool = False,
    estimates: Estimates | None = None,
) -> Ranked:
    given = settings or Settings()
    question = Question(
        given=given,
        knobs=fakes.knobs(),
        candidates=candidates(given, fakes.knobs()),
        host=host or Host(),
        estimates=estimates or fakes.estimates(),
        bfloat16=bfloat16,
        disk_bytes=fakes.gib(37),
        currency="USD",
    )
    return row_for(target, question)


def test_the_figures_stand_against_each_other(fakes: SimpleNamespace) -> None:
    row = ask(fakes, fakes.target("big", 60)).row
    assert (row.verdict, row.grade, row.price_of_it) == ("fits", "green", ())
    assert row.peak_reserved_bytes == fakes.gib(54)
    assert row.device_bytes == fakes.gib(54.5)
    assert row.usable_bytes == fakes.gib(60)
    assert row.headroom_bytes == fakes.gib(6)
    assert row.limiting_stage == "decode"
    assert row.near_miss is None
    assert (
        row.why.text == "decode reserves 54.0 GiB, 55.1 GiB at most; at least 60.0 GiB are usable."
    )


def test_a_knob_held_fast_is_named_as_the_cure(fakes: SimpleNamespace) -> None:
    row = ask(fakes, fakes.target("mid", 36), Settings(offload="none", vae_tiling=False)).row
    # int8 weights fit 36.72 only; nf4 does
    assert row.verdict == "fits"
    strict = Settings(offload="none", vae_tiling=False, quantization={"transformer": "none"})
    row = ask(fakes, fakes.target("mid", 36), strict).row
    assert (row.verdict, row.grade) == ("does_not_fit", "red")
    assert row.headroom_bytes == fakes.gib(36) - fakes.gib(54)
    assert row.near_miss is not None
    assert row.near_miss.text == "With model offload it would fit (slower)."


def test_more_ram_is_named_as_the_cure(fakes: SimpleNamespace) -> None:
    host = Host(fakes.gib(16))
    row = ask(fakes, fakes.target("mid", 10), Settings(), host).row
    assert row.verdict == "does_not_fit"
    assert row.near_miss is not None
    assert row.near_miss.code == "plan-cure-ram"
    assert row.near_miss.args["host"] == "37.0 GiB"


def test_a_hopeless_card_says_by_how_much(fakes: SimpleNamespace) -> None:
    row = ask(fakes, fakes.target("small", 6)).row
    assert row.verdict == "does_not_fit"
    assert row.why.text == "denoise reserves 8.5 GiB, 2.5 GiB too much."
    assert row.price_of_it == ()
    assert row.near_miss is not None
    assert row.near_miss.text == (
        "Even with sequential offload, VAE tiling 256. Ask for fewer frames or a smaller size."
    )


def test_no_bfloat16_before_ampere(fakes: SimpleNamespace) -> None:
    old = fakes.target("t4", 60, capability=7.5)
    row = ask(fakes, old, bfloat16=True).row
    assert (row.verdict, row.peak_reserved_bytes) == ("does_not_fit", None)
    assert row.near_miss is not None
    assert "float16" in row.near_miss.text
    assert ask(fakes, old).row.verdict == "fits"


def test_unverified_cards_are_unknown_and_say_why(fakes: SimpleNamespace) -> None:
    reason = Note("card-unverified-vendor", {"card": "MI300X", "vendor": "AMD"})
    target = fakes.target("mi300x", 180, unverified=reason, total=None, context=None)
    row = ask(fakes, target).row
    assert (row.verdict, row.grade, row.settings) == ("unknown", None, None)
    assert row.why.code == "card-unverified-vendor"


def test_offers_with_too_little_ram_are_passed_over(fakes: SimpleNamespace) -> None:
    enough = ask(fakes, fakes.target("mid", 36, price=1.0, ram_gib=64)).row
    assert enough.offer is not None
    assert enough.price_of_it == ("slower",)
    short = ask(fakes, fakes.target("mid", 36, price=1.0, ram_gib=32)).row
    assert short.offer is None
    assert short.price_of_it == ("slower", "more_ram")


def test_the_machine_at_hand_brings_its_ram(fakes: SimpleNamespace) -> None:
    target = fakes.target("mine", 36, machine_ram_bytes=fakes.gib(16))
    assert ask(fakes, target).row.price_of_it == ("lossy",)
    assert ask(fakes, target, host=Host(fakes.gib(64))).row.price_of_it == ("slower",)


def test_a_containers_limit_is_named(fakes: SimpleNamespace) -> None:
    limited = fakes.target(
        "mine", 36, machine_ram_bytes=fakes.gib(1), ram_of="container", price=None
    )
    held = Settings(offload="none")
    why = ask(fakes, limited, held).row.why
    assert why.code == "plan-over-host-limit"
    assert (
        why.text == "host RAM: needs 2.0 GiB, 1.0 GiB more than the container's limit of 1.0 GiB."
    )
    given = ask(fakes, limited, held, host=Host(fakes.gib(1))).row.why  # what was given goes first
    assert given.text == "host RAM: needs 2.0 GiB, 1.0 GiB more than the 1.0 GiB there."


def test_an_offer_without_ram_is_marked(fakes: SimpleNamespace) -> None:
    open_row = ask(fakes, fakes.target("mid", 36, price=1.0)).row
    assert open_row.offer_note is not None
    assert open_row.offer_note.text == "RAM unknown: needs 37.0 GiB"
    assert ask(fakes, fakes.target("mid", 36, price=1.0, ram_gib=64)).row.offer_note is None
    assert ask(fakes, fakes.target("mid", 36)).row.offer_note is None


def test_a_disk_that_is_too_small(fakes: SimpleNamespace) -> None:
    host = Host(disk_bytes=fakes.gib(20), files_bytes=fakes.gib(37))
    row = ask(fakes, fakes.target("big", 60), host=host).row
    assert row.verdict == "does_not_fit"
    assert row.why.text == "disk: needs 37.0 GiB, 17.0 GiB more than the 20.0 GiB there."
    assert row.near_miss is not None
    assert row.near_miss.text.startswith("With 37.0 GiB of disk")


def test_a_card_that_only_lacks_expandable_segments_says_so(fakes: SimpleNamespace) -> None:
    """Everything lives in 46 GiB and 60 are reserved, in pieces; in one piece 47 are."""

    def predict(
        traced: Trace, settings: Settings, architecture: str | None, limit_bytes: int | None
    ) -> MemoryEstimate:
        whole = "expandable_segments:True" in (settings.alloc_conf or "")
        stages = (fakes.stage("denoise", "transformer", 37, 9),)
        found: MemoryEstimate = fakes.estimate(stages, cached_gib=1 if whole else 14)
        return found

    estimates = Estimates(fakes.trace, predict)
    given = Settings(offload="none", quantization={"transformer": "none"}, vae_tiling=False)
    row = ask(fakes, fakes.target("a", 50), given, estimates=estimates).row
    assert row.verdict == "does_not_fit"
    assert row.near_miss is not None
    assert row.near_miss.code == "predict-expandable-helps"
    assert row.near_miss.args["reserved"] == "47.0 GiB"
    # with 40 GiB what lives does not fit either: something else is named
    other = ask(fakes, fakes.target("b", 40), given, estimates=estimates).row
    assert other.near_miss is not None and other.near_miss.code != "predict-expandable-helps"
