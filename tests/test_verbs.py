"""The verbs that plan more than once, on real dry runs of a small model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cardfit
from cardfit.cli.main import run
from cardfit.errors import BadFile, BadRequest
from cardfit.request import Request, Settings
from cardfit.units import GIB, MIB

SMALL = {"model": "stable-diffusion-1.5", "width": 256, "height": 256, "num_inference_steps": 1}
FIXED = Settings(offload="none", quantization={"unet": "none"}, vae_tiling=False, vae_slicing=False)
TARGET = round(3.4 * GIB)


def small(**fields: object) -> Request:
    return Request.model_validate({**SMALL, **fields})


def verdict(request: Request, target: int = TARGET) -> str:
    (row,) = cardfit.plan(request, FIXED, target_bytes=target).cards
    return row.verdict


# --- plan --target


def test_a_target_is_a_card_that_is_nothing_but_a_size():
    answer = cardfit.plan(small(), FIXED, target_bytes=TARGET)
    (row,) = answer.cards
    assert (row.card, row.memory_bytes, row.offer) == ("target", TARGET, None)
    assert row.peak_reserved_bytes == answer.peak.reserved_bytes
    assert row.device_bytes - row.peak_reserved_bytes == TARGET - row.usable_bytes  # the context
    assert "target-is" in [note.code for note in answer.notes]
    # just what it takes by likely figures is tight, one step below does not fit
    assert verdict(small(), row.device_bytes) == "tight"
    assert verdict(small(), row.device_bytes - 2 * MIB) == "does_not_fit"


def test_a_target_turns_knobs_to_stay_within():
    (row,) = cardfit.plan(small(), target_bytes=2 * GIB).cards
    assert row.verdict == "fits" and row.settings.offload != "none"


def test_a_target_beside_a_card_never_makes_it_larger():
    (free,) = cardfit.plan(small(), FIXED, cards=["l4"]).cards
    (cut,) = cardfit.plan(small(), FIXED, cards=["l4"], target_bytes=TARGET).cards
    (same,) = cardfit.plan(small(), FIXED, cards=["l4"], target_bytes=99 * GIB).cards
    assert cut.card == "l4" and cut.usable_bytes < TARGET < free.usable_bytes
    assert same.usable_bytes == free.usable_bytes


def test_a_target_below_the_context_is_refused():
    with pytest.raises(BadRequest, match="more than the CUDA context"):
        cardfit.plan(small(), target_bytes=100)


# --- largest


def test_the_largest_batch_is_that_of_asking_for_every_one():
    found = cardfit.largest(small(), FIXED, vary="batch", target_bytes=TARGET, most=6)
    verdicts = [verdict(small(batch=count)) for count in range(1, 7)]
    fits = [at + 1 for at, each in enumerate(verdicts) if each == "fits"]
    holds = [at + 1 for at, each in enumerate(verdicts) if each in ("fits", "tight")]
    assert 0 < len(fits) < len(holds) < 6  # the target was taken so
    assert found.fits.value == str(max(fits)) and found.tight.value == str(max(holds))
    assert found.next.value == str(max(holds) + 1) and found.next.verdict == "does_not_fit"
    assert found.next.limiting_stage is not None and "too much" in found.next.why.text
    assert found.monotone and found.fits.settings.offload == "none"
    for tried in found.tried:
        assert tried.verdict == verdicts[int(tried.value) - 1]


def test_where_everything_holds_the_end_is_said():
    found = cardfit.largest(small(), FIXED, vary="batch", card="l4", most=2)
    assert (found.fits.value, found.tight, found.next, found.ends_at) == ("2", None, None, "2")
    assert "largest-no-end" in [note.code for note in found.notes]


def test_where_nothing_holds_the_smallest_says_why():
    found = cardfit.largest(small(), FIXED, vary="batch", target_bytes=2 * GIB, most=3)
    assert found.fits is None and found.tight is None
    assert found.next.value == "1"


def test_largest_needs_something_to_run_on():
    with pytest.raises(BadRequest, match="--card"):
        cardfit.largest(small(), vary="batch")
    with pytest.raises(BadRequest, match="makes pictures"):
        cardfit.largest(small(), vary="num_frames", card="l4")
    with pytest.raises(BadRequest, match="at least 1"):
        cardfit.largest(small(), vary="batch", card="l4", most=0)


def test_the_command_prints_it_and_can_fail(capsys):
    flags = "--width 256 --height 256 --steps 1 --vary batch --most 2".split()
    words = ["largest", "stable-diffusion-1.5", *flags]
    assert run([*words, "--card", "l4"]) == 0
    out = capsys.readouterr().out
    assert "Largest that fits       2 with" in out
    fixed = "--offload none --quantization unet=none --no-vae-slicing --check --json".split()
    assert run([*words, *fixed, "--target", "2GB"]) == 1
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.largest/1" and body["fits"] is None
    assert run([*words, "--target", "much"]) == 2
    assert run(words) == 2


# --- near misses


def test_a_red_row_names_the_nearest_batch_that_fits():
    asked = small(batch=6)
    plain = cardfit.plan(asked, FIXED, target_bytes=TARGET)
    answer = cardfit.near_misses(plain, target_bytes=TARGET)
    said = answer.cards[0].near_miss
    assert said.code == "nearest" and "Tried" in said.text
    # the knob that helps was held fast here: it leaves the job alone, so it is said first
    assert plain.cards[0].near_miss.code == "plan-cure"
    assert said.text.startswith(plain.cards[0].near_miss.text)
    options = {each["field"]: each["value"] for each in said.args["options"]}
    assert set(options) == {"batch", "size"}
    value = int(options["batch"])
    assert f"a batch of {value} instead of 6 fits" in said.text
    assert verdict(small(batch=value)) == "fits" != verdict(small(batch=value + 1))
    width, _, height = options["size"].partition("x")
    near = small(batch=6, width=int(width), height=int(height))
    larger = small(batch=6, width=int(width) + 8, height=int(height) + 8)
    assert verdict(near) == "fits" != verdict(larger)
    assert "nearest-looked" in [note.code for note in answer.notes]


def test_nothing_smaller_fits_is_said_with_what_was_tried():
    asked = small(width=64, height=64)
    plain = cardfit.plan(asked, FIXED, target_bytes=2 * GIB)
    answer = cardfit.near_misses(plain, target_bytes=2 * GIB)
    said = answer.cards[0].near_miss
    assert said.code == "nearest-none"
    assert "sizes down to 32x32" in said.text


def test_rows_that_fit_are_left_alone():
    answer = cardfit.near_misses(cardfit.plan(small(), FIXED, cards=["l4"]))
    assert answer.cards[0].near_miss is None
    assert "nearest-looked" not in [note.code for note in answer.notes]


def test_siblings_are_smaller_or_quicker_and_do_the_same():
    from cardfit.library.load import all_models, load
    from cardfit.library.rules import resolve
    from cardfit.plan.nearest import siblings_of

    def names(model: str) -> list[str]:
        entry = load(model)
        exact, _ = resolve(entry, Request(model=model))
        return [each.id for each in siblings_of(entry, exact, all_models())]

    assert names("wan2.1-t2v-14b") == ["wan2.1-vace-1.3b", "wan2.1-t2v-1.3b"]
    assert names("sdxl-base") == ["sdxl-turbo"]
    assert names("flux.1-schnell") == []


def test_the_command_looks_for_them_when_asked(capsys):
    words = "plan stable-diffusion-1.5 --width 64 --height 64 --steps 1 --target 2GB".split()
    fixed = "--offload none --quantization unet=none --no-vae-slicing --json".split()
    assert run([*words, *fixed]) == 0
    (row,) = json.loads(capsys.readouterr().out)["cards"]
    assert row["near_miss"]["code"] == "plan-cure"
    assert run([*words, *fixed, "--near-misses"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["cards"]
    assert row["near_miss"]["code"] == "nearest-none"


# --- check


BUDGET = """\
settings: {{offload: none, quantization: {{unet: none}}}}
requests:
  - {{model: stable-diffusion-1.5, width: 256, height: 256, num_inference_steps: 1, max_peak: {peak},
     card: l4, max_seconds: 5, max_cost: {{amount: 0.01, currency: USD}}}}
"""


def test_a_budget_decides_the_exit_code_and_writes_both_files(tmp_path, capsys):
    file, xml, table = tmp_path / "b.yaml", tmp_path / "j.xml", tmp_path / "m.md"
    more = "--junit", str(xml), "--markdown", str(table)
    file.write_text(BUDGET.format(peak="4GB"), encoding="utf-8")
    offers = tmp_path / "offers.csv"
    offers.write_text(
        "provider,card_id,gpus,price,currency,per,as_of\nhome,l4,1,0.10,USD,hour,2026-01-02\n"
    )
    words = ["check", str(file), "--offers-file", str(offers)]
    assert run([*words, *more]) == 0
    assert "All 1 keep" in capsys.readouterr().out
    assert 'failures="0"' in xml.read_text(encoding="utf-8")
    assert table.read_text(encoding="utf-8").startswith("|")
    # files are not written over, and nothing is planned before that is said
    assert run([*words, *more]) == 2
    assert "exists already" in capsys.readouterr().err
    file.write_text(BUDGET.format(peak="2GB"), encoding="utf-8")
    assert run([*words, *more, "--force", "--json"]) == 1
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.check/1" and not body["kept"]
    assert [each["code"] for each in body["rows"][0]["violations"]][0] == "check-memory"
    assert "<failure" in xml.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "b.yaml",
        "j.xml",
        "m.md",
        "offers.csv",
    ]
    file.write_text("requests: []", encoding="utf-8")
    assert run(words) == 2


# --- diff


def test_diff_reads_what_plan_prints(tmp_path, capsys):
    files = []
    for width in (256, 320):
        words = f"plan stable-diffusion-1.5 --card l4 --steps 1 --height 256 --width {width} --json"
        assert run(words.split()) == 0
        files.append(tmp_path / f"{width}.json")
        files[-1].write_text(capsys.readouterr().out, encoding="utf-8")
    first, second = map(str, files)
    assert run(["diff", first, second]) == 0
    out = capsys.readouterr().out
    assert "width: 256 to 320" in out and "decode +" in out
    assert run(["diff", second, first, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["schema"] == "cardfit.diff/1" and not body["same"]
    assert body["peak"]["after_bytes"] < body["peak"]["before_bytes"]
    assert run(["diff", first, str(tmp_path / "none.json")]) == 2


# --- readme


def test_three_rows_hold_until_somebody_changes_them(tmp_path, capsys):
    words = "readme stable-diffusion-1.5 --width 256 --height 256 --steps 1 --card rtx-4090".split()
    assert run(words) == 0
    block = capsys.readouterr().out
    rows = [line for line in block.splitlines() if line.startswith("|")][2:]
    assert 2 <= len(rows) <= 3 and "256x256" in rows[0] and "1.0x" in rows[0]
    found = cardfit.readme(small(), card="rtx-4090")
    sizes = [row.device_bytes for row in found.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert [row.kind for row in found.rows][::2] == ["full", "least"]
    # the command of a row asks for that row
    answer = cardfit.plan(small(), found.rows[-1].settings, cards=["rtx-4090"])
    assert answer.cards[0].device_bytes == sizes[-1]

    page = tmp_path / "README.md"
    page.write_text(f"# A model\n\n{block}\nmore\n", encoding="utf-8")
    assert run(["readme", "--verify", str(page)]) == 0
    page.write_text(page.read_text(encoding="utf-8").replace("1.0x", "1.1x"), encoding="utf-8")
    assert run(["readme", "--verify", str(page)]) == 1
    out = capsys.readouterr().out
    assert "slowdown is 1.0x now, and the file says 1.1x" in out


def test_other_versions_alone_move_nothing(tmp_path):
    from cardfit.report import readme as page

    found = cardfit.readme(small(), card="rtx-4090")
    file = tmp_path / "README.md"
    text = "\n".join(page.lines(found)).replace(f"diffusers {found.versions['diffusers']}", "x 1")
    file.write_text(text, encoding="utf-8")
    checked = cardfit.verify_readme(file)
    assert checked.kept and [note.code for note in checked.notes] == ["readme-versions"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("# nothing\n", "no rows of cardfit"),
        ('<!-- cardfit readme {"request": 3} -->\n', "line 1: the marker"),
        ('<!-- cardfit readme {"request": {"model": "svd"}} -->\n| a |\n', "have no end"),
    ],
)
def test_a_page_without_rows_is_named(tmp_path, text, named):
    file = tmp_path / "README.md"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadFile, match=named):
        cardfit.verify_readme(file)


def test_readme_takes_a_model_or_a_page():
    assert run(["readme"]) == 2
    assert run(["readme", "svd", "--verify", "README.md"]) == 2
    assert run(["readme", "--verify", "README.md", "--width", "640"]) == 2


# --- one card for a list


def test_a_list_names_the_cheapest_card_for_all(tmp_path: Path, capsys):
    file, offers = tmp_path / "mix.yaml", tmp_path / "offers.csv"
    one = (
        "{model: stable-diffusion-1.5, width: 256, height: 256, num_inference_steps: 1, count: %d}"
    )
    file.write_text(f"requests:\n  - {one % 5}\n  - {one % 1}\n", encoding="utf-8")
    offers.write_text(
        "provider,card_id,gpus,price,currency,per,as_of\n"
        "home,l4,1,0.10,USD,hour,2026-01-02\nhome,rtx-4090,1,0.11,USD,hour,2026-01-02\n"
    )
    words = ["plan", "--requests", str(file), "--card", "l4", "--card", "rtx-4090"]
    assert run([*words, "--offers-file", str(offers)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 cards fit every request" in out
    assert "Cheapest by the hour: L4, $0.10 an hour at home." in out
    assert "Cheapest for the whole list: RTX 4090" in out  # dearer, but more than that quicker


def test_every_schema_of_these_verbs_is_printed(capsys):
    for name in ("plans", "largest", "budget", "check", "diff", "readme"):
        assert run(["schema", name]) == 0
        assert json.loads(capsys.readouterr().out)["type"] == "object"
