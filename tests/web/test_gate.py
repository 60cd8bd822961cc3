"""Who gets in, how much they may take, and the headers of every answer."""

from __future__ import annotations

import asyncio

import pytest

from cardfit.messages import language, say
from cardfit.web.gate import POLICY, Gate, language_of
from cardfit.web.options import Options

TOKEN = "0123456789abcdef"
QUICK = "/api/v1/models?task=inpainting"


def test_every_answer_keeps_to_itself(client):
    for path in ("/", QUICK, "/static/app.js", "/nothing", "/api/v1/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert "unsafe" not in POLICY


def test_other_host_names_are_turned_away(client):
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
        found = client.get(QUICK, headers={"host": host})
        assert (found.status_code, found.json()["code"]) == (421, "web-other-host")
    for host in ("localhost:8642", "127.0.0.1", "[::1]:8642", "LOCALHOST"):
        assert client.get(QUICK, headers={"host": host}).status_code == 200


def test_a_name_can_be_allowed(serve):
    client = serve(names=("cards.example",))
    assert client.get(QUICK, headers={"host": "cards.example"}).status_code == 200
    assert serve(names=()).get(QUICK, headers={"host": "any.example"}).status_code == 200


def test_a_token_is_asked_of_everything_but_the_static_files(serve):
    client = serve(token=TOKEN)
    assert client.get("/static/app.js").status_code == 200
    for path in ("/", QUICK, "/autopsy", "/?token=wrong"):
        found = client.get(path)
        assert (found.status_code, found.json()["code"]) == (401, "web-token")
    assert client.get(QUICK, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get(QUICK, headers={"authorization": "Bearer x"}).status_code == 401


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address(serve):
    client = serve(token=TOKEN)
    found = client.get(f"/?model=sdxl-turbo&token={TOKEN}")
    assert found.status_code == 303
    assert found.headers["location"] == "/?model=sdxl-turbo"
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert client.get(QUICK, headers={"cookie": cookie.partition(";")[0]}).status_code == 200
    client.http.cookies.clear()
    elsewhere = client.get(f"http://localhost//evil.example/?token={TOKEN}").headers["location"]
    assert not elsewhere.startswith("//")


def test_a_client_that_asks_too_often_is_told_when_to_come_back(serve):
    client = serve(per_second=0.001, burst=3)
    found = [client.get(QUICK).status_code for _ in range(5)]
    assert found == [200, 200, 200, 429, 429]
    refused = client.get(QUICK)
    assert refused.headers["retry-after"] == "2"
    assert refused.json()["code"] == "web-too-often"
    assert client.get("/static/app.js").status_code == 200


def test_a_body_is_bounded_as_stated_and_as_it_comes(serve):
    client = serve(body_bytes=1000)
    body = b'{"text": "' + b"x" * 2000 + b'"}'
    stated = client.post("/api/v1/autopsy", content=body)
    assert (stated.status_code, stated.json()["code"]) == (413, "web-too-large")

    async def parts():
        for at in range(0, len(body), 100):
            yield body[at : at + 100]

    headers = {"content-type": "application/json"}
    streamed = client.post("/api/v1/autopsy", content=parts(), headers=headers)
    assert (streamed.status_code, streamed.json()["code"]) == (413, "web-too-large")


def test_a_body_that_does_not_come_is_not_waited_for(serve):
    client = serve(body_s=0.05)

    async def slowly():
        yield b'{"text": '
        await asyncio.sleep(5)
        yield b'"x"}'

    headers = {"content-type": "application/json"}
    found = client.post("/api/v1/autopsy", content=slowly(), headers=headers)
    assert (found.status_code, found.json()["code"]) == (408, "web-too-slow")


def test_an_address_is_bounded(client):
    found = client.get("/?model=" + "x" * 9000)
    assert (found.status_code, found.json()["code"]) == (414, "web-long-query")


@pytest.mark.parametrize(
    ("query", "accepted", "spoken"),
    [
        ("", "", "en"),
        ("", "nl-NL,nl;q=0.9,en;q=0.8", "nl"),
        ("", "fr, ko;q=0.4, ja;q=0.6", "ja"),
        ("lang=ko", "nl", "ko"),
        ("lang=xx", "nl", "nl"),
        ("lang=../../etc", "", "en"),
        ("", "nl;q=zero, ;;q=", "en"),
    ],
)
def test_the_language_is_the_one_that_was_asked_for(query, accepted, spoken):
    from starlette.datastructures import Headers

    scope = {"type": "http", "query_string": query.encode()}
    assert language_of(scope, Headers({"accept-language": accepted})) == spoken


def test_each_request_speaks_its_own_language_and_leaves_none_behind():
    spoken = []

    async def app(scope, receive, send):
        await asyncio.sleep(0.01)
        spoken.append((scope["query_string"], language()))

    async def both():
        gate = Gate(app, Options())
        scopes = [
            {"type": "http", "path": "/", "headers": [(b"host", b"localhost")], "query_string": q}
            for q in (b"lang=nl", b"lang=ja", b"")
        ]
        await asyncio.gather(*(gate(scope, None, None) for scope in scopes))

    asyncio.run(both())
    assert sorted(spoken) == [(b"", "en"), (b"lang=ja", "ja"), (b"lang=nl", "nl")]
    assert language() == "en" and say("yes") == "yes"
