"""The frame on a host's page: who may show it, what it shows, what it tells the page around it."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cardfit.errors import BadFile, BadRequest
from cardfit.web.embed import embed_of, stylesheet

HOST = "https://host.example"
LINK = "https://host.example/order?gpu={card}&for={model}"
OFFERS = (
    "provider,card_id,gpus,price,currency,per,as_of\n"
    "host,l4,1,0.77,EUR,hour,2026-11-20\nhost,rtx-4090,1,1.23,EUR,hour,2026-11-20\n"
)
PAGE = "/embed?model=sdxl-turbo"
POINT = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    (folder / "mine.csv").write_text(OFFERS)
    (folder / "logo.svg").write_bytes(POINT)
    return folder


def host_of(files: Path, origins=(HOST,), link: str | None = LINK):
    return {
        "embed": embed_of(
            origins, link, ["accent=#0A7D4F"], files / "logo.svg", files / "mine.csv"
        ),
        "offers_file": files / "mine.csv",
    }


@pytest.fixture
def framed(serve, files):
    return serve(**host_of(files), token="0123456789abcdef")


def test_only_the_named_origins_may_frame_it_and_nothing_else_may_be_framed(framed, serve):
    found = framed.get(PAGE)
    assert found.status_code == 200  # without the token, which the rest asks for
    assert f"frame-ancestors {HOST};" in found.headers["content-security-policy"] + ";"
    assert "x-frame-options" not in found.headers
    for path in ("/", "/card/l4", "/embedded", "/embed/../records", "/api/v1/offers"):
        other = framed.get(path)
        assert other.status_code in (401, 404) and other.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in other.headers["content-security-policy"]
    script = framed.get("/static/embed-host.js")
    assert script.headers["cross-origin-resource-policy"] == "cross-origin"
    plain = serve()
    assert plain.get(PAGE).status_code == 404
    assert plain.get("/").headers["x-frame-options"] == "DENY"


def test_it_shows_the_hosts_cards_and_prices_alone_and_says_predicted(framed):
    text = framed.get(PAGE).text
    names = re.findall(
        r"<b>([^<]+)</b> <span class=\"verdict|<li [^>]*>\s*<div><b>([^<]+)</b>", text
    )
    assert {each for pair in names for each in pair if each} == {"L4", "RTX 4090"}
    assert "0.77 EUR/h" in text and "1.23 EUR/h" in text and "$" not in text
    bands = re.findall(r"predicted, (\d+\.\d)-(\d+\.\d) GiB", text)
    assert len(bands) == 2 and all(float(low) < float(high) for low, high in bands)
    assert "predicted, not measured" in text
    assert 'href="https://host.example/order?gpu=l4&amp;for=sdxl-turbo"' in text
    korean = framed.get(f"{PAGE}&lang=ko").text
    assert '<html lang="ko">' in korean and 'name="lang" value="ko"' in korean


def test_the_bands_are_those_of_the_answer(framed, serve, files):
    other = serve(offers_file=files / "mine.csv")
    body = {"request": {"model": "sdxl-turbo"}, "cards": ["rtx-4090"]}
    row = other.post("/api/v1/plan", json=body).json()["cards"][0]
    said = re.search(r"RTX 4090.*?predicted, ([\d.]+)-([\d.]+) GiB", framed.get(PAGE).text, re.S)
    low, high = float(said[1]), float(said[2])
    assert low <= row["peak_reserved_bytes"] / 2**30 <= high


def test_an_address_carries_ids_and_nothing_that_is_shown(framed):
    hostile = "model=sdxl-turbo&size=%3Cscript%3E&price=1&card=x&text=Buy+now&logo=//evil"
    text = framed.get(f"/embed?{hostile}").text
    assert "Buy now" not in text and "evil" not in text and "<script>" not in text
    assert framed.get("/embed?model=no-such-model").status_code == 200


def test_colours_and_logo_are_the_hosts(framed, serve, files):
    style = framed.get("/embed/colours.css")
    assert style.headers["content-type"].startswith("text/css")
    assert "--accent: #0a7d4f;" in style.text and "--on-accent: #fff;" in style.text
    assert framed.get("/embed/logo").content == POINT
    bare = embed_of([HOST], None, [], None, files / "mine.csv")
    assert stylesheet(bare) == ""
    client = serve(embed=bare, offers_file=files / "mine.csv")
    assert client.get("/embed/logo").status_code == 404
    assert "data-choice" in client.get(PAGE).text and 'target="_top"' not in client.get(PAGE).text


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"origins": ["host.example"]}, "embed-bad-origin"),
        ({"origins": ["https://host.example/path"]}, "embed-bad-origin"),
        ({"origins": ["https://*.example; script-src *"]}, "embed-bad-origin"),
        ({"origins": []}, "embed-needs-origin"),
        ({"offers_file": None}, "embed-needs-offers"),
        ({"link": "javascript:alert('{card}')"}, "embed-bad-link"),
        ({"link": "https://host.example/order"}, "embed-bad-link"),
        ({"link": "https://host.example/{card.__class__}{card}"}, "embed-bad-link"),
        ({"link": "https://host.example/{other}{card}"}, "embed-bad-link"),
        ({"link": "https://{card}/order"}, "embed-bad-link"),
        ({"link": "https://host.example/{card:>99999999}"}, "embed-bad-link"),
        ({"colours": ["accent=red"]}, "embed-bad-colour"),
        ({"colours": ["accent=#fff;}"]}, "embed-bad-colour"),
        ({"colours": ["background=#ffffff"]}, "embed-bad-colour"),
        ({"logo": "mine.csv"}, "embed-bad-logo"),
        ({"logo": "none.svg"}, "planfile-not-read"),
    ],
)
def test_what_a_host_cannot_mean_is_refused_at_the_start(files, change, code):
    given = {
        "origins": [HOST],
        "link": LINK,
        "colours": [],
        "logo": None,
        "offers_file": files / "mine.csv",
        **change,
    }
    if given["logo"]:
        given["logo"] = files / given["logo"]
    with pytest.raises((BadRequest, BadFile)) as refused:
        embed_of(**given)
    assert refused.value.code == code


# --- in a browser, on a page of another origin


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        """Nothing."""

    def end_headers(self) -> None:
        """A page written anew within one second must not come from the browser's cache."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


@pytest.fixture
def host_page(files) -> Iterator:
    """Serves a folder at an origin of its own; returns the address once the frame's is known."""
    folder = files / "site"
    folder.mkdir(exist_ok=True)
    handler = functools.partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://localhost:{server.server_address[1]}"

    def write(cards: str) -> str:
        line = (
            f'<iframe src="{cards}{PAGE}" data-cardfit title="Which GPU" style="width:100%;border:0"></iframe>'
            f'<script src="{cards}/static/embed-host.js"></script>'
        )
        listen = "<script>addEventListener('cardfit:choice', e => { window.chosen = e.detail; });</script>"
        (folder / "index.html").write_text(f"<!doctype html><h1>Our cards</h1>{line}{listen}")
        return f"{origin}/index.html"

    yield origin, write
    server.shutdown()
    server.server_close()


def test_one_line_shows_it_at_its_height_and_a_choice_reaches_the_page(
    browser, listening, host_page, files
):
    from playwright.sync_api import expect

    origin, write = host_page
    cards = listening(**host_of(files, origins=(origin,), link=None))
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(write(cards))
    frame = page.frame_locator("iframe")
    expect(frame.locator(".choices li")).to_have_count(2, timeout=60_000)
    wanted = page.frames[1].evaluate("Math.ceil(document.body.getBoundingClientRect().height)")
    page.wait_for_function(
        "want => Math.abs(document.querySelector('iframe').offsetHeight - want) < 2", arg=wanted
    )
    assert wanted > 200
    frame.locator("[data-choice]").first.click()
    page.wait_for_function("window.chosen")
    chosen = page.evaluate("window.chosen")
    assert chosen["card"] in ("l4", "rtx-4090") and chosen["verdict"] in ("fits", "tight")
    assert chosen["request"]["model"] == "sdxl-turbo" and "settings" in chosen
    colour = frame.locator(".choices .go").first.evaluate(
        "e => getComputedStyle(e).backgroundColor"
    )
    assert colour == "rgb(10, 125, 79)"
    shot(page, "embed")
    other = listening(**host_of(files, origins=("https://somebody.example",), link=None))
    refused = "frame-ancestors"  # named in the browser's own message when it refuses a frame
    with page.expect_console_message(lambda message: refused in message.text):
        page.goto(write(other))
    assert frame.locator(".choices").count() == 0
    context.close()


def test_a_site_opens_from_a_disk_and_its_index_leads_to_a_card(browser, tmp_path):
    from playwright.sync_api import expect

    from cardfit.cli.main import run

    assert run(["site", "-o", str(tmp_path / "public"), "--models", "sdxl-turbo"]) == 0
    context = browser.new_context()
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((tmp_path / "public" / "index.html").as_uri())
    expect(page.locator("#choose")).to_be_visible()
    page.locator("#card").select_option("l4")
    expect(page.locator("#said")).to_contain_text("L4")
    assert "card=l4" in page.url
    shot(page, "site-index")
    page.locator("#open").click()
    expect(page.locator("#card-l4")).to_be_visible()
    assert page.url.endswith("sdxl-turbo/512x512.html#card-l4")
    shot(page, "site-page")
    page.go_back()
    expect(page.locator("#said")).to_contain_text("L4")
    assert troubles == []
    context.close()


def shot(page, name: str) -> None:
    import os

    if folder := os.environ.get("CARDFIT_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)
