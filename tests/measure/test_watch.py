"""The wrapping of components: the same calls as the dry run, nothing left behind."""

from __future__ import annotations

from typing import Any

import torch

from cardfit.measure.runner.clock import Clock
from cardfit.measure.runner.failure import kind_of, site_of, told, tried_bytes
from cardfit.measure.runner.watch import METHODS, Watch
from cardfit.trace import dryrun


class Vae(torch.nn.Module):
    """Decodes through its own forward."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)  # type: ignore[no-any-return]

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        return self(self(x))  # type: ignore[no-any-return]


class Scheduler:
    """Steps."""

    def step(self, x: Any) -> Any:
        return x


class Counted(Clock):
    """A clock whose peaks are a script."""

    counts = True

    def __init__(self, *peaks: int) -> None:
        self.script = list(peaks)

    def peaks(self) -> tuple[int | None, int | None]:
        value = self.script.pop(0) if self.script else 0
        return value, 2 * value


def test_the_methods_are_the_dry_runs() -> None:
    assert METHODS == dryrun._METHODS


def test_only_the_outermost_call_counts_and_nothing_stays() -> None:
    vae, unet, scheduler = Vae(), torch.nn.Linear(2, 2), Scheduler()
    before = (dict(vae.__dict__), dict(unet.__dict__), Scheduler.step)
    seen: list[Any] = []
    watch = Watch(
        {"vae": vae, "unet": unet},
        Clock(),
        stage_said=lambda *s: seen.append(s),
        step_said=seen.append,
    )
    x = torch.ones(1, 2)
    with watch.watching(scheduler):
        vae.decode(x)  # a picture is encoded and decoded before anything is denoised
        for _ in range(2):
            unet(x)
            scheduler.step(x)
        vae.decode(x)
    assert (dict(vae.__dict__), dict(unet.__dict__), Scheduler.step) == before
    assert [(c.stage, c.component, c.method) for c in watch.calls()] == [
        ("encode_condition", "vae", "decode"),
        ("denoise", "unet", "forward"),
        ("denoise", "unet", "forward"),
        ("decode", "vae", "decode"),
    ]
    assert seen == [("encode_condition", "vae"), ("denoise", "unet"), 1, 2, ("decode", "vae")]
    rows = watch.stage_rows()
    assert [(row.name, row.calls) for row in rows] == [
        ("encode_condition", 1),
        ("denoise", 2),
        ("decode", 1),
    ]
    assert sum(row.seconds for row in rows) <= watch.seconds + 1e-3
    assert len(watch.step_seconds()) == 1


def test_peaks_belong_to_the_call_or_to_the_stage_around_it() -> None:
    vae, unet = Vae(), torch.nn.Linear(2, 2)
    #             begin, unet, between, unet, end of stage, decode, end
    clock = Counted(99, 10, 30, 20, 5, 40, 7)
    watch = Watch({"unet": unet, "vae": vae}, clock)
    x = torch.ones(1, 2)
    with watch.watching():
        unet(x)
        unet(x)
        vae.decode(x)
    assert [call.allocated_peak_bytes for call in watch.calls()] == [10, 20, 40]
    rows = watch.stage_rows()
    assert [(row.allocated_peak_bytes, row.reserved_peak_bytes) for row in rows] == [
        (30, 60),
        (40, 80),
    ]


def test_a_hook_that_came_meanwhile_stays() -> None:
    """A pipeline under model offload takes its hooks off and puts new ones on when it ends."""
    unet = torch.nn.Linear(2, 2)
    watch = Watch({"unet": unet}, Clock())

    def hooked(x: torch.Tensor) -> torch.Tensor:
        return x

    with watch.watching():
        unet.__dict__["forward"] = hooked
    assert unet.__dict__["forward"] is hooked


def test_an_error_names_its_place() -> None:
    vae = Vae()
    try:
        vae.inner(torch.ones(1, 3))
    except RuntimeError as error:
        found = told(error, {"vae": vae})
        assert found["kind"] == "error" and found["op"] == "vae.inner, forward"
        assert site_of(error.__traceback__, {}) == "forward"
    try:
        torch.empty(1 << 60, dtype=torch.uint8)
    except RuntimeError as error:
        found = told(error, {})
        assert (found["kind"], found["tried_bytes"]) == ("host_oom", 1 << 60)


def test_kinds_of_errors() -> None:
    assert (
        kind_of(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")) == "oom"
    )
    assert kind_of(RuntimeError("CUDA error: out of memory")) == "oom"
    assert kind_of(MemoryError()) == "host_oom"
    assert kind_of(ValueError("x")) == "error"
    assert tried_bytes("nothing of the kind") is None
