"""Answers made in threads: so many at once, so many waiting, each question once, the last ones remembered.

In: a key and a function. Out: what the function returns, from memory where the key was asked before. Whoever asks for
what is being made waits for the same answer. Who has waited long enough is told so; the answer is made all the same,
and a second question finds it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from http import HTTPStatus
from typing import Any, TypeVar, cast

from cardfit.web.options import Options
from cardfit.web.problems import RETRY_S, Refused

_T = TypeVar("_T")


class Work:
    """A pool of threads with a bound on what waits and a memory of what was made; used from one event loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pool: ThreadPoolExecutor | None = None
        self._making: dict[str, asyncio.Future[Any]] = {}
        self._made: OrderedDict[str, Any] = OrderedDict()

    async def ask(
        self, key: str, make: Callable[[], _T], *, keep: bool = True, within_s: float | None = None
    ) -> _T:
        """What ``make`` returns. Raises Refused where too much is asked for or it takes too long, and as ``make``."""
        if key in self._made:
            self._made.move_to_end(key)
            return cast(_T, self._made[key])
        future = self._making.get(key) or self._start(key, make, keep)
        limit = self._options.within_s if within_s is None else within_s
        done, _ = await asyncio.wait((future,), timeout=limit)
        if not done:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "web-takes-longer",
                seconds=f"{limit:g}",
                again=RETRY_S,
            )
        return cast(_T, future.result())

    def known(self, key: str) -> bool:
        """Whether the answer is remembered."""
        return key in self._made

    def _start(self, key: str, make: Callable[[], Any], keep: bool) -> asyncio.Future[Any]:
        most = self._options.workers + self._options.waiting
        if len(self._making) >= most:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "web-busy", most=most, again=RETRY_S)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._options.workers, thread_name_prefix="cardfit")
        context = copy_context()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pool, lambda: context.run(make))
        self._making[key] = future

        def ended(done: asyncio.Future[Any]) -> None:
            self._making.pop(key, None)
            if done.cancelled() or done.exception() is not None or not keep:
                return
            self._made[key] = done.result()
            while len(self._made) > self._options.kept:
                self._made.popitem(last=False)

        future.add_done_callback(ended)
        return future

    def close(self) -> None:
        """Drop what waits; what runs may end by itself. A later question begins anew."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None
        self._making.clear()
