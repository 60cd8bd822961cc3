"""How a server holds up: plan requests at a steady rate, many of them never asked before, with slow clients beside.

    python benchmarks/web_load.py                                50 a second for 60 s, 2,000 distinct, half unseen
    python benchmarks/web_load.py --unseen 0 --distinct 100      answers from memory alone
    python benchmarks/web_load.py --slow 200                     200 clients that send and read a byte at a time beside

A server of its own is started, rate limit off. Printed: percentiles of the time from when a request was due to its
last byte, statuses, the server's CPU and memory, the client's own CPU. Requests go out when they are due, whether or
not earlier ones have been answered, so that a server that falls behind shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx
import psutil

MODELS = ("sdxl-base", "sd3.5-medium", "flux.1-schnell", "stable-diffusion-1.5")
_CARDS = ("rtx-4090", "l4", "a100-pcie-80gb", "rtx-3060")
_GRID = 64
_START_S = 60


@dataclass(slots=True)
class Seen:
    """What came back."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)


def bodies(count: int, seed: int) -> list[dict[str, object]]:
    """``count`` distinct requests over sizes, steps and batches of several models."""
    source, found = random.Random(seed), dict[str, dict[str, object]]()
    while len(found) < count:
        request = {
            "model": source.choice(MODELS),
            "width": _GRID * source.randint(6, 24),
            "height": _GRID * source.randint(6, 24),
            "num_inference_steps": source.randint(20, 40),
            "batch": source.randint(1, 4),
        }
        found[str(request)] = {"request": request}
    return list(found.values())


async def drive(base: str, plan: list[dict[str, object]], rate: float, seen: Seen) -> None:
    """Send ``plan`` in turn, ``rate`` a second."""
    limits = httpx.Limits(max_connections=400, max_keepalive_connections=100)
    async with httpx.AsyncClient(base_url=base, limits=limits, timeout=60) as client:

        async def one(body: dict[str, object], due: float) -> None:
            try:
                status = str((await client.post("/api/v1/plan", json=body)).status_code)
            except httpx.HTTPError as error:
                status = type(error).__name__
            seen.seconds.append(time.perf_counter() - due)
            seen.statuses[status] += 1

        start, tasks = time.perf_counter(), []
        for at, body in enumerate(plan):
            due = start + at / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(one(body, due)))
        await asyncio.gather(*tasks)


async def learn(base: str, known: list[dict[str, object]]) -> None:
    """Ask each of ``known`` until it is answered."""
    async with httpx.AsyncClient(base_url=base, timeout=60) as client:
        for body in known:
            while (
                await client.post("/api/v1/plan", json=body)
            ).status_code == httpx.codes.SERVICE_UNAVAILABLE:
                await asyncio.sleep(1)


async def linger(port: int, stop: asyncio.Event) -> None:
    """One client that sends a request a byte at a time and never comes to its end."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    text = b"POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    for at in range(10_000):
        if stop.is_set():
            break
        writer.write(text[at : at + 1] or b" ")
        try:
            await writer.drain()
            await asyncio.wait_for(stop.wait(), 0.2)
        except TimeoutError:
            continue
        except OSError:
            break
    writer.close()


def started(port: int, folder: str | None) -> subprocess.Popen[bytes]:
    """A server of its own, ready to answer."""
    environment = dict(os.environ) | ({"CARDFIT_CACHE": folder} if folder else {})
    command = [sys.executable, "-m", "cardfit", "serve", "--port", str(port), "--rate", "0"]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    for _ in range(10 * _START_S):
        try:
            httpx.get(f"http://127.0.0.1:{port}/static/app.js")
            return server
        except httpx.HTTPError:
            time.sleep(0.1)
    server.kill()
    raise SystemExit("the server did not start")


def share(values: list[float], part: float) -> float:
    """The value that ``part`` of ``values`` stay under, in milliseconds."""
    return 1000 * sorted(values)[min(len(values) - 1, int(part * len(values)))]


async def main() -> None:
    """Run it and print what was seen."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--rate", type=float, default=50)
    asked.add_argument("--seconds", type=float, default=60)
    asked.add_argument("--distinct", type=int, default=2000)
    asked.add_argument("--unseen", type=float, default=0.5)
    asked.add_argument("--slow", type=int, default=0)
    asked.add_argument("--cache", help="folder for the server's cache")
    given = asked.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = started(port, given.cache)
    try:
        count = int(given.rate * given.seconds)
        pool = bodies(given.distinct, 1)
        known = pool[: max(1, round(len(pool) * (1 - given.unseen)))]
        base = f"http://127.0.0.1:{port}"
        await learn(base, known)
        source = random.Random(2)
        fresh = iter(pool[len(known) :])
        plan = [
            next(fresh, source.choice(known))
            if source.random() < given.unseen
            else source.choice(known)
            for _ in range(count)
        ]
        process, stop, seen = psutil.Process(server.pid), asyncio.Event(), Seen()
        lingering = [asyncio.create_task(linger(port, stop)) for _ in range(given.slow)]
        before, own = process.cpu_times(), time.process_time()
        memory = process.memory_info().rss
        begun = time.perf_counter()
        await drive(base, plan, given.rate, seen)
        took, after = time.perf_counter() - begun, process.cpu_times()
        stop.set()
        await asyncio.gather(*lingering)
        cpu = after.user + after.system - before.user - before.system
        marks = ", ".join(
            f"p{part * 100:g} {share(seen.seconds, part):.0f} ms" for part in (0.5, 0.95, 0.99)
        )
        print(f"{count} requests, {given.rate:g}/s asked, {count / took:.1f}/s answered: {marks}")
        print(f"statuses {dict(seen.statuses)}")
        print(
            f"server CPU {cpu:.1f} s in {took:.1f} s; client CPU {time.process_time() - own:.1f} s"
        )
        print(
            f"server memory {memory / 1e6:.0f} MB before, {process.memory_info().rss / 1e6:.0f} MB after"
        )
        print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    finally:
        server.terminate()
        server.wait(10)


if __name__ == "__main__":
    asyncio.run(main())
