"""The printed plan is parsed again and held to its laws."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.plan.answer import Recommended, Said
from cardfit.report import line, plan
from cardfit.report.style import Style

NUMBER = r"([0-9]+\.[0-9])"
STAGE = re.compile(
    rf"^  (\w+) +{NUMBER} +{NUMBER} +{NUMBER} +{NUMBER} GiB +{NUMBER}\.\.{NUMBER}", re.M
)
CARD = re.compile(rf"^  (\S.*?)  +(\d+) GiB  ([●◐◔○?YPTN]) (.*?)  .*?{NUMBER}/{NUMBER}$", re.M)
SHAPES = {"●": "fits", "◐": "fits", "◔": "tight", "○": "does not fit", "?": "unknown"}


def page(answer, **style) -> str:
    return "\n".join(plan.lines(answer, Style(**style)))


def test_the_parts_of_every_stage_sum_to_its_peak(answer):
    rows = STAGE.findall(page(answer))
    assert [row[0] for row in rows] == ["encode_prompt", "denoise", "decode"]
    for _, weights, working, allocator, peak, low, high in rows:
        assert float(weights) + float(working) + float(allocator) == pytest.approx(
            float(peak), abs=0.2
        )
        assert float(low) <= float(peak) <= float(high)


def test_everything_resident_is_the_highest_stage(answer):
    text = page(answer)
    peaks = [float(row[4]) for row in STAGE.findall(text)]
    resident = re.search(rf"everything resident {NUMBER} GiB", text)
    assert float(resident[1]) == max(peaks)


def test_a_verdict_follows_from_peak_against_usable_and_shows_its_shape(answer):
    rows = CARD.findall(page(answer))
    assert len(rows) >= 6
    for _, _, shape, words, peak, usable in rows:
        verdict = words.split(",")[0].strip()
        assert verdict == SHAPES[shape]
        assert (verdict in ("fits", "tight")) == (float(peak) <= float(usable))


def test_a_half_disc_names_its_price(answer):
    for _, _, shape, words, *_ in CARD.findall(page(answer)):
        assert (shape == "◐") == (words.startswith("fits,"))


@pytest.mark.parametrize("width", [100, 80, 60, 40])
@pytest.mark.parametrize("bars", [True, False])
@pytest.mark.parametrize("every", [True, False])
def test_no_line_is_wider_than_the_screen(answer, width, bars, every):
    lines = plan.lines(answer, Style(width=width, bars=bars), every=every)
    assert max(len(line) for line in lines) <= width


@given(width=st.integers(40, 100))
def test_columns_go_from_the_right_and_the_card_stays(made, width):
    text = "\n".join(plan.lines(made.answer(), Style(width=width)))
    head = next(line for line in text.splitlines() if line.strip().startswith("card "))
    every = ["card", "memory", "verdict", "settings", "price", "peak/of"]
    shown = [name for name in every if name in head]
    assert shown == every[: len(shown)]
    assert len(shown) >= 2
    assert "RTX 4090" in text


def test_prices_show_their_age_at_full_width(answer):
    text = page(answer)
    assert re.search(r"\$0\.40/h  6 d\b", text, re.M)


def test_the_next_commands_work_as_printed(answer):
    asked = ["cardfit", "plan", "wan2.1-t2v-14b", "--num-frames", "81", "--card", "l4"]
    lines = plan.lines(answer, Style(), command=asked)
    body = "\n".join(lines[lines.index("Do this") + 1 :]).replace("\\\n", "")
    commands = [shlex.split(line, comments=True) for line in body.splitlines()]
    commands = [words for words in commands if words]
    assert commands[0] == [*asked[:5], "--card", "rtx-4080", "--as", "code"]
    assert commands[1] == [*asked, "--save", "plan.yaml"]
    assert commands[2] == [*asked, "--all"]


def test_without_a_typed_command_one_is_made_of_the_request(answer):
    assert "cardfit plan wan2.1-t2v-14b --width 1280 --height 720 --num-frames 81" in page(answer)


def test_hidden_cards_are_counted(answer):
    text = page(answer)
    hidden = int(re.search(r"\.\.\. (\d+) more: --all", text)[1])
    shown = len(re.findall(r"^  \S.* GiB  [●◐◔○?] ", text, re.M))
    assert shown + hidden == len(answer.cards)
    assert "more: --all" not in "\n".join(plan.lines(answer, Style(), every=True))


def test_picks_are_always_in_the_short_table(answer):
    text = page(answer)
    assert "RTX 4080" in text and "RTX A6000" in text
    assert re.search(r"^Cheapest  RTX 4080, ", text, re.M)
    assert re.search(r"^Fastest   none to name$", text, re.M)


def test_piped_output_has_no_bar_and_no_colour(answer):
    text = page(answer)
    assert "█" not in text and "\x1b" not in text
    assert "█" in page(answer, bars=True)
    assert "\x1b[32m" in page(answer, colour=True)


def test_letters_stand_in_for_shapes(answer):
    text = page(answer, shapes=False)
    text.encode("ascii")
    assert "P fits, slower" in text and "N does not fit" in text and "T tight" in text


def test_an_unknown_card_says_why(answer):
    text = "\n".join(plan.lines(answer, Style(), every=True))
    assert re.search(r"192 GiB  \? unknown +usable memory not known", text)


def test_the_catch_names_the_tight_card(answer):
    assert re.search(
        r"^The catch Tight, so it may fail, on: L4 24 GiB \(decode 20\.5 of 21\.0 GiB\)\.$",
        page(answer),
        re.M,
    )


def test_a_catch_of_the_plan_stands_in_the_page_and_not_in_the_notes(made):
    note = Said.of("plan-catch-decode", card="L4", decode="20.5 GiB", denoise="8.0 GiB")
    answer = made.answer(notes=(note, Said.of("plan-no-seconds")))
    assert "Decode comes last" in page(answer)
    assert [line for line in plan.notes(answer, Style()) if "Decode" in line] == []
    assert any("fastest" in line for line in plan.notes(answer, Style()))


def test_nothing_fits_is_said_and_no_code_is_offered(made):
    rows = tuple(row for row in made.cards() if row.verdict == "does_not_fit")
    none = Recommended(cheapest=None, fastest=None, safest=None)
    text = page(made.answer(rows, recommended=none))
    assert "No card of this list holds it" in text
    assert "--as code" not in text and "--all" in text


def test_the_line_is_one_line_with_the_versions(answer):
    text = line.line(answer, Style())
    assert "\n" not in text
    assert "77.8 GiB" in text and "RTX 4080" in text and "diffusers 0.42.1" in text


def test_the_header_names_dtypes_licence_and_runtime(answer):
    recommended = {"transformer": "bfloat16", "text_encoder": "bfloat16", "vae": "float32"}
    text = "\n".join(plan.lines(answer, Style(), recommended=recommended))
    assert "bf16, vae fp32" in text.splitlines()[0]
    assert "81 frames, 5.1 s at 16 fps" in text
    assert "licence Apache-2.0" in text and "diffusers 0.42.1" in text


def test_settings_take_one_line_where_they_can(made):
    text = "group offload by block, VAE tiling 256"
    row = made.cards()[4].model_copy(update={"settings_text": text})
    found = page(made.answer((row,)))
    assert re.search(r"block offload, VAE tiling 256  \$0\.25/h", found)
    scheme = row.model_copy(update={"settings_text": "bnb-int8 (transformer, text_encoder)"})
    assert re.search(r"  bnb-int8 +\$0\.25/h", page(made.answer((scheme,))))


def test_few_cards_have_their_reasons_told(made):
    rows = made.cards()[:6]
    found = page(made.answer(rows))
    assert re.search(r"^  T4 +decode reserves 20\.5 GiB, 6\.3 GiB too much\.$", found, re.M)
    assert "\nWhy\n" not in page(made.answer())
