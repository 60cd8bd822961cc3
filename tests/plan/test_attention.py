"""Cards before Ampere run another attention kernel: another trace, where it takes more; the row says what was given."""

from __future__ import annotations

from dataclasses import replace

from cardfit.plan import attention
from cardfit.plan.knobs import Candidate, closed, trace_key
from cardfit.plan.search import Estimates
from cardfit.plan.target import Target
from cardfit.request import Settings

TURING = Target("t4", "T4", 16 << 30, "Turing", 7.5, None, None)
AMPERE = replace(TURING, card="a10", architecture="Ampere", compute_capability=8.6)
UNKNOWN = replace(TURING, compute_capability=None)


class Traced:
    """Stands for a trace that says how much more a card without flash takes."""

    def __init__(self, more_bytes: int) -> None:
        self.more_without_flash_bytes = more_bytes


def estimates(more_bytes: int) -> Estimates:
    return Estimates(lambda _settings: Traced(more_bytes), lambda *_: None)


def options(**knobs: str) -> tuple[Candidate, ...]:
    return (Candidate(closed(Settings(**knobs)), (), (0,)),)


def test_only_an_old_card_gets_another_trace_and_only_where_it_matters():
    much, little = estimates(attention.MATTERS_BYTES + 1), estimates(attention.MATTERS_BYTES)
    (changed,) = attention.as_run(options(), TURING, much)
    assert changed.settings.attention == "efficient"
    assert trace_key(changed.settings) != trace_key(options()[0].settings)
    for target, memo in ((AMPERE, much), (UNKNOWN, much), (TURING, little)):
        assert attention.as_run(options(), target, memo) == options()


def test_a_kernel_that_was_named_stays():
    much = estimates(attention.MATTERS_BYTES + 1)
    for name in ("math", "efficient", "flash"):
        assert attention.as_run(options(attention=name), TURING, much) == options(attention=name)


def test_flash_by_name_is_refused_before_ampere_only():
    flash = Settings(attention="flash")
    assert attention.refuses_flash(flash, TURING)
    assert not attention.refuses_flash(flash, AMPERE)
    assert not attention.refuses_flash(Settings(), TURING)


def test_the_row_says_what_was_given():
    ran = Settings(attention="efficient", vae_tiling=True)
    assert attention.as_given(ran, Settings()) == Settings(vae_tiling=True)
