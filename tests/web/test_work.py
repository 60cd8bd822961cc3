"""Answers in threads: once each, remembered, bounded."""

from __future__ import annotations

import asyncio
import threading

import pytest

from cardfit.web.options import Options
from cardfit.web.problems import Refused
from cardfit.web.work import Work


def test_a_question_asked_twice_at_once_is_answered_once():
    made = []

    def slow():
        made.append(threading.get_ident())
        return len(made)

    async def both():
        work = Work(Options())
        return await asyncio.gather(*(work.ask("key", slow) for _ in range(5))), await work.ask(
            "key", slow
        )

    assert asyncio.run(both()) == ([1] * 5, 1)
    assert made != [threading.get_ident()]


def test_only_the_last_answers_are_remembered_and_none_that_should_not_be():
    made = []

    async def asked():
        work = Work(Options(kept=2))
        for key in ("a", "b", "a", "c", "b", "a"):  # c drives b out, then b drives a out
            await work.ask(key, lambda key=key: made.append(key))
        await work.ask("d", lambda: made.append("d"), keep=False)
        return work.known("a"), work.known("d"), work.known("c")

    assert asyncio.run(asked()) == (True, False, False)
    assert made == ["a", "b", "c", "b", "a", "d"]


def test_an_error_is_not_remembered():
    async def asked():
        work = Work(Options())
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await work.ask("key", lambda: 1 / 0)
        return await work.ask("key", lambda: "answered")

    assert asyncio.run(asked()) == "answered"


def test_who_waits_too_long_is_told_and_finds_the_answer_later():
    go = threading.Event()

    async def asked():
        work = Work(Options())
        with pytest.raises(Refused) as slow:
            await work.ask("key", lambda: go.wait(30), within_s=0.02)
        go.set()
        return slow.value.code, await work.ask("key", lambda: "anew")

    assert asyncio.run(asked()) == ("web-takes-longer", True)


def test_no_more_waits_than_may():
    go = threading.Event()

    async def asked():
        work = Work(Options(workers=1, waiting=1))
        waiting = [asyncio.create_task(work.ask(f"{n}", lambda: go.wait(30))) for n in range(2)]
        await asyncio.sleep(0.01)
        with pytest.raises(Refused) as busy:
            await work.ask("2", lambda: None)
        go.set()
        await asyncio.gather(*waiting)
        await asyncio.sleep(0)
        return busy.value.code, await work.ask("2", lambda: "free")

    assert asyncio.run(asked()) == ("web-busy", "free")
