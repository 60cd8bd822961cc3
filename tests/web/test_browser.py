"""The pages in a real browser: the journeys, the policy, axe, the keyboard, a phone, dark mode, languages.

A Chromium is found or installed (`scripts/find_chromium.py`). In CI a missing one is an error, elsewhere the tests are
skipped. Screenshots are kept where CARDFIT_SCREENSHOTS names a folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

HERE = Path(__file__).parent
AXE = (HERE / "vendor" / "axe-4.14.1.min.js").read_text(encoding="utf-8")
SHOTS = os.environ.get("CARDFIT_SCREENSHOTS")
PATIENCE_MS = 60_000  # a busy machine
SDXL = "model=sdxl-turbo"
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def server(listening) -> str:
    return listening()


class Visit:
    """A page that fails the test at any error of its scripts, of the policy, or of a request elsewhere."""

    def __init__(self, browser: Browser, server: str, **options) -> None:
        self.context = browser.new_context(base_url=server, **options)
        self.context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self.context.new_page()
        self.troubles: list[str] = []
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", lambda request: self._request(request.url, server))

    def _console(self, message) -> None:
        if message.type == "error" and "status of 4" not in message.text:
            self.troubles.append(message.text)

    def _request(self, url: str, server: str) -> None:
        if not url.startswith((server, "data:")):
            self.troubles.append(f"asked {url}")

    def shot(self, name: str) -> None:
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)

    def axe(self) -> None:
        """No finding of axe's rules for WCAG 2 A and AA; run where the policy does not reach, in the tools' world."""
        self.page.evaluate(AXE + "; window.axe = axe; null")
        found = self.page.evaluate(
            "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})"
        )
        said = [
            (each["id"], each["help"], [node["target"] for node in each["nodes"]][:3])
            for each in found["violations"]
        ]
        assert said == []


@pytest.fixture
def visit(browser: Browser, server: str) -> Iterator:
    made: list[Visit] = []

    def open_(path: str, **options) -> Visit:
        made.append(Visit(browser, server, **options))
        made[-1].page.goto(path)
        return made[-1]

    yield open_
    for each in made:
        each.context.close()
    assert [trouble for each in made for trouble in each.troubles] == []


def table(page: Page):
    return page.locator("table.cards")


# --- journeys


def test_a_change_redraws_the_cards_and_the_address_reproduces_them(visit):
    first = visit(f"/?{SDXL}")
    page = first.page
    expect(table(page)).to_be_visible()
    expect(page.locator("h1")).to_have_text("SDXL-Turbo")
    before = page.locator(".stages .decides b").inner_text()
    page.get_by_label("Outputs at once", exact=True).and_(page.locator("[type=number]")).fill("4")
    page.keyboard.press("Tab")
    page.wait_for_url("**batch=4**")
    expect(page.locator(".stages .decides b")).not_to_have_text(before)
    shown = page.locator("#results").inner_text()
    again = visit(page.url).page
    expect(table(again)).to_be_visible()
    assert again.locator("#results").inner_text() == shown
    assert again.locator("#f-batch").input_value() == "4"
    first.shot("plan")


def test_a_slider_moves_its_number_and_the_answer(visit):
    page = visit(f"/?{SDXL}").page
    expect(table(page)).to_be_visible()
    slider = page.locator("input[data-for=f-batch]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#f-batch").input_value() == "2"
    page.wait_for_url("**batch=2**")


def test_another_model_brings_its_own_controls(visit):
    page = visit(f"/?{SDXL}&batch=4").page
    expect(table(page)).to_be_visible()
    page.locator("#f-model").select_option("pixart-sigma")
    page.wait_for_url("**model=pixart-sigma**")
    expect(page.locator("h1")).to_contain_text("PixArt")
    assert "batch" not in page.url
    assert page.locator("#f-width").input_value() == "1024"


def test_filters_and_order_stand_in_the_address(visit):
    page = visit(f"/?{SDXL}").page
    expect(table(page)).to_be_visible()
    page.locator("#f-sort").select_option("time")
    page.wait_for_url("**sort=time**")
    page.locator("#f-price").fill("0.3")
    page.keyboard.press("Tab")
    page.wait_for_url("**price=0.3**")
    expect(page.locator("table.cards tbody tr").first).to_contain_text("/h")
    prices = [text.split()[0] for text in page.locator("table.cards td.p").all_inner_texts()]
    assert all(
        float(price.removesuffix("/h").lstrip("$")) <= 0.3 for price in prices if "/h" in price
    )
    assert any("/h" in price for price in prices)
    assert page.locator("table.cards", has_text="$4.99").count() == 0


def test_a_size_that_cannot_be_is_said_beside_its_field_and_the_page_stands(visit):
    page = visit(f"/?{SDXL}").page
    expect(table(page)).to_be_visible()
    page.locator("#f-width").fill("500")
    page.keyboard.press("Tab")
    said = page.locator("#beside-width")
    expect(said).to_contain_text("multiple")
    expect(page.locator("#results .alert")).to_be_visible()
    page.locator("#f-width").fill("512")
    page.keyboard.press("Tab")
    expect(table(page)).to_be_visible()
    expect(said).not_to_contain_text("multiple")


def test_one_card_shows_its_stages_what_changes_would_do_and_the_commands(visit):
    opened = visit(f"/card/rtx-4090?{SDXL}")
    page = opened.page
    expect(page.locator("h1")).to_contain_text("RTX 4090")
    expect(page.locator("#knobs tbody tr").first).to_be_visible()
    assert page.locator("#knobs .verdict").count() >= 3
    expect(page.locator("#step-1")).to_contain_text("--card rtx-4090")
    expect(page.locator("#rent b").first).to_be_visible()
    page.locator("#rent-monthly").fill("150")
    page.keyboard.press("Tab")
    expect(page.locator("#rent .notes").first).to_contain_text("hours")
    page.get_by_text("the diffusers lines").last.click()
    expect(page.locator("#code")).to_contain_text("from_pretrained")
    opened.axe()
    opened.shot("card")


def test_an_error_text_becomes_a_cause_and_hostile_text_stays_text(visit):
    opened = visit("/autopsy")
    page = opened.page
    text = (
        "<script>alert(1)</script>\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of "
        "23.64 GiB of which 1.20 GiB is free."
    )
    page.locator("#text").fill(text)
    page.get_by_role("button", name="Find the cause").click()
    expect(page.locator("[data-ready]")).to_contain_text("4.0 GiB")
    assert page.locator("#text").input_value() == text
    assert page.locator("main script").count() == 0
    opened.axe()


def test_a_dropped_workflow_sets_the_configurator(visit, tmp_path):
    opened = visit(f"/?{SDXL}")
    page = opened.page
    expect(table(page)).to_be_visible()
    plan = tmp_path / "mine.yaml"
    plan.write_text("request:\n  model: sdxl-turbo\n  batch: 3\n")
    page.locator("#f-file").set_input_files(str(plan))
    page.wait_for_url("**batch=3**")
    expect(table(page)).to_be_visible()
    assert page.locator("#f-batch").input_value() == "3"
    page.locator("#f-file").set_input_files(
        files=[{"name": "photo.jpg", "mimeType": "image/jpeg", "buffer": b"\xff\xd8\0\0"}]
    )
    expect(page.locator("#beside-file")).to_contain_text("nothing that can be opened")
    page.locator("#f-file").set_input_files(
        files=[{"name": "big.json", "mimeType": "text/json", "buffer": b"x" * (17 * 2**20)}]
    )
    expect(page.locator("#beside-file")).to_contain_text("larger than")
    opened.axe()
    opened.shot("open")


# --- for everybody


@pytest.mark.parametrize(
    ("name", "path", "options"),
    [
        ("wide", f"/?{SDXL}", {"viewport": {"width": 1440, "height": 900}}),
        ("dark", f"/?{SDXL}", {"color_scheme": "dark"}),
        ("phone", f"/?{SDXL}", {"viewport": {"width": 375, "height": 700}, "has_touch": True}),
        ("accuracy", "/accuracy", {}),
        ("accuracy-dark-phone", "/accuracy", {"color_scheme": "dark", "viewport": {"width": 375, "height": 700}}),
        ("records", "/records", {}),
        ("autopsy", "/autopsy", {"color_scheme": "dark"}),
        ("nothing", "/nothing-here", {}),
    ],
)  # fmt: skip
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(visit, name, path, options):
    opened = visit(path, **options)
    page = opened.page
    if path.startswith("/?"):
        expect(table(page)).to_be_visible()
    opened.axe()
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0
    opened.shot(name)


def test_the_keyboard_alone_reaches_the_answer_and_its_terms(visit):
    page = visit(f"/?{SDXL}").page
    expect(table(page)).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator(".stages .term").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#about-stage")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#about-stage")).to_be_hidden()


def test_a_verdict_has_a_word_and_a_shape_beside_its_colour(visit):
    page = visit(f"/?{SDXL}&every=1").page
    expect(table(page)).to_be_visible()
    chips = page.locator("table.cards .verdict")
    assert chips.count() > 50
    for chip in chips.all()[:: chips.count() // 8]:
        assert chip.inner_text().strip()
        assert chip.locator("svg.shape").count() == 1


def test_without_scripts_the_form_still_answers(visit):
    page = visit(f"/?{SDXL}", java_script_enabled=False).page
    page.locator("#f-batch").fill("2")
    page.get_by_role("button", name="Show the cards").click()
    for _ in range(60):
        if table(page).count():
            break
        page.wait_for_timeout(500)
        page.get_by_text("Look again").click()
    expect(table(page)).to_be_visible()
    assert "batch=2" in page.url


def test_the_first_view_is_light(visit, server):
    import httpx

    with httpx.Client(base_url=server, headers={"accept-encoding": "gzip"}) as client:
        paths = (
            f"/?{SDXL}",
            "/static/cardfit.css",
            "/static/app.js",
            "/static/vendor/htmx-2.0.11.min.js",
        )
        sizes = []
        for path in paths:
            with client.stream("GET", path) as answer:
                sizes.append(sum(len(part) for part in answer.iter_raw()))
    assert sum(sizes) <= 100_000, json.dumps(dict(zip(paths, sizes, strict=True)))
