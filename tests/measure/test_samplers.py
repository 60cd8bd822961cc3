"""What samplers read, on this machine and on made ones; what they cannot read is left out with a reason."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cardfit.measure.samplers import FIGURES, SAMPLERS, Target
from cardfit.measure.samplers.base import Figures, grown
from cardfit.measure.samplers.fake_nvml import FakeNvml, NVMLError
from cardfit.measure.samplers.host import Cgroup, Pressure, Process
from cardfit.measure.samplers.nvml import Nvml
from cardfit.measure.sampling import Sampling
from cardfit.records.models import Repetition
from cardfit.units import GIB, KIB, MIB


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_this_process() -> None:
    sampler = Process(os.getpid())
    sampler.mark()
    held = bytearray(64 * MIB)
    held[:: 4 * KIB] = b"x" * len(held[:: 4 * KIB])
    high = sampler.read(border=True)
    del held
    low = sampler.read()
    assert high["rss"] > 64 * MIB and high["cpu"] > 0
    assert low["rss_peak"] >= low["rss"]
    if "pss" not in sampler.silent:
        assert 0 < high["pss"] <= high["rss"] * 1.05
    assert "pss" not in low  # it costs, so at borders only


def test_a_process_that_is_gone_is_silent() -> None:
    sampler = Process(2**22 + 1)
    sampler.mark()
    assert sampler.read(border=True) == {}
    assert "does not show" in sampler.silent["rss"].text


def test_a_process_by_its_files(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/7/status": "Name:\tx\nVmHWM:\t 200 kB\nVmRSS:\t 100 kB\nVmSwap:\t 5 kB\n",
            "proc/7/stat": "7 (a) b) c) R 1 " + " ".join(["0"] * 9) + " 150 50 0",
            "proc/7/io": "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n",
            "proc/7/clear_refs": "",
        },
    )
    sampler = Process(7, root)
    assert sampler.read()["rss_peak"] == 100 * KIB  # nobody started the kernel's mark anew
    sampler.mark()
    found = sampler.read(border=True)
    assert (root / "proc/7/clear_refs").read_text() == "5"
    assert found == {
        "rss": 100 * KIB, "rss_high": 200 * KIB, "rss_peak": 200 * KIB, "swap": 5 * KIB, "cpu": 2.0,
        "disk_read": 4096.0, "disk_written": 8192.0,
    }  # fmt: skip
    assert set(sampler.silent) == {"pss"}
    kept = Process(7, root, fresh=False)
    (root / "proc/7/clear_refs").write_text("")
    kept.mark()
    assert (root / "proc/7/clear_refs").read_text() == ""


V1 = {
    "proc/7/cgroup": "3:cpu:/x\n5:memory:/docker/abc\n",
    "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": "1000\n",
    "sys/fs/cgroup/memory/docker/abc/memory.max_usage_in_bytes": "5000\n",
    "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "8000\n",
    "sys/fs/cgroup/memory/docker/abc/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
}
V2 = {
    "proc/7/cgroup": "0::/slice/abc\n",
    "sys/fs/cgroup/slice/abc/memory.current": "1000\n",
    "sys/fs/cgroup/slice/abc/memory.peak": "5000\n",
    "sys/fs/cgroup/slice/abc/memory.max": "8000\n",
    "sys/fs/cgroup/slice/abc/memory.events": "low 0\noom 3\noom_kill 2\n",
}


@pytest.mark.parametrize(("version", "files", "peak"), [
    (1, V1, "sys/fs/cgroup/memory/docker/abc/memory.max_usage_in_bytes"),
    (2, V2, "sys/fs/cgroup/slice/abc/memory.peak"),
])  # fmt: skip
def test_both_versions_of_control_groups(
    tmp_path: Path, version: int, files: dict[str, str], peak: str
) -> None:
    root = write(tmp_path, files)
    sampler = Cgroup(7, root)
    assert sampler.version == version
    sampler.mark()
    # a peak of an earlier phase is not this one's
    assert sampler.read() == {"cgroup": 1000.0, "cgroup_limit": 8000.0, "oom_kills": 2.0}
    write(root, {peak: "6000\n"})
    assert sampler.read()["cgroup"] == 6000.0


def test_a_group_without_a_limit_or_counts(tmp_path: Path) -> None:
    files = {"proc/7/cgroup": V2["proc/7/cgroup"], "sys/fs/cgroup/slice/abc/memory.current": "10"}
    root = write(tmp_path, files | {"sys/fs/cgroup/slice/abc/memory.max": "max\n"})
    sampler = Cgroup(7, root)
    assert sampler.read() == {"cgroup": 10.0}
    assert set(sampler.silent) == {"cgroup_limit", "oom_kills"}
    assert Cgroup(7, tmp_path / "nothing").read() == {}
    assert set(Cgroup(7, tmp_path / "nothing").silent) == {"cgroup", "cgroup_limit", "oom_kills"}


def test_pressure(tmp_path: Path) -> None:
    line = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n"
    sampler = Pressure(write(tmp_path, {"proc/pressure/memory": line}))
    assert sampler.read() == {}
    assert sampler.read(border=True) == {"memory_some": 1.5, "memory_full": 0.5}
    assert "io_some" in sampler.silent and "cpu_full" in sampler.silent


ANSWERS: dict[str, Any] = {
    "nvmlDeviceGetMemoryInfo": [SimpleNamespace(used=4 * GIB), SimpleNamespace(used=6 * GIB)],
    "nvmlDeviceGetPowerUsage": [100_000, 300_000],
    "nvmlDeviceGetClockInfo": 1800,
    "nvmlDeviceGetTemperature": 60,
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=50, memory=0),
    "nvmlDeviceGetEncoderUtilization": [0, 100],
    "nvmlDeviceGetPcieThroughput": 1000,
    "nvmlDeviceGetCurrPcieLinkGeneration": [1, 4],
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetCurrentClocksEventReasons": [0x1, 0x4, 0x40, 0x1],
}


def test_a_card_that_answers() -> None:
    fake = FakeNvml(**{**ANSWERS, "nvmlDeviceGetEncoderUtilization": [(0, 1), (40, 1)]})
    sampler = Nvml(0, fake)
    series = Figures([(float(at), sampler.read()) for at in range(4)])
    found = series.of(FIGURES)
    assert found["device_used_peak_bytes"] == 6 * GIB
    assert (found["power_mean_w"], found["power_peak_w"]) == (250.0, 300.0)
    assert (found["sm_clock_mean_hz"], found["heat_peak_c"], found["gpu_use_mean_share"]) == (
        1.8e9,
        60.0,
        0.5,
    )
    assert found["encoder_use_peak_share"] == 0.4
    assert found["link_received_bytes"] == 3 * 1000 * KIB
    assert (found["link_gen"], found["link_lanes"]) == (4.0, 16.0)
    assert (found["throttled_power_share"], found["throttled_heat_share"]) == (0.25, 0.25)
    sampler.close()
    assert fake.opened == 0


def test_a_card_that_does_not_answer_is_never_zero() -> None:
    fake = FakeNvml(nvmlDeviceGetPowerUsage=NVMLError("Not Supported"))
    sampler = Nvml(0, fake)
    assert sampler.read() == {}
    assert "does not say power of this card: Not Supported" in sampler.silent["power"].text
    found = Figures([(0.0, sampler.read()), (1.0, sampler.read())]).of(FIGURES)
    assert found["power_mean_w"] is None and found["link_received_bytes"] is None
    for broken in (FakeNvml(working=False), FakeNvml(cards=0)):
        silent = Nvml(0, broken)
        assert (
            silent.read() == {} and "the driver did not answer" in silent.silent["device_used"].text
        )


def test_every_figure_belongs_to_a_sampler_that_reads_it_or_says_why() -> None:
    target = Target(
        os.getpid(), 0, FakeNvml(**{**ANSWERS, "nvmlDeviceGetEncoderUtilization": (0, 1)})
    )
    known: set[str] = set()
    for make in SAMPLERS.values():
        sampler = make(target)
        sampler.mark()
        known |= set(sampler.read(border=True)) | set(sampler.silent)
        sampler.close()
    missing = {name for name, figure in FIGURES.items() if figure.raw not in known}
    assert missing <= {"decoder_use_peak_share"}
    assert all(figure.says and (__doc__ or "") for figure in FIGURES.values())
    units = ("_bytes", "_seconds", "_w", "_hz", "_c", "_share", "link_gen", "link_lanes", "_kills")
    assert all(name.endswith(units) for name in FIGURES)


def test_a_counter_needs_two_readings_and_a_stage_only_its_own() -> None:
    figures = Figures([(0.0, {"rss": 5.0}), (1.0, {"rss": 9.0}), (2.0, {"rss": 7.0})])
    assert figures.of(FIGURES, [(1.5, 3.0)])["rss_seen_peak_bytes"] == 7.0
    assert figures.of(FIGURES, [(4.0, 5.0)])["rss_seen_peak_bytes"] is None
    assert Figures([(0.0, {"cpu": 1.0})]).of(FIGURES)["cpu_seconds"] is None
    assert grown([(0.0, 1.0), (1.0, 4.0)]) == 3.0


def test_a_phase_has_a_reason_for_every_figure_it_lacks() -> None:
    sampling = Sampling(Target(os.getpid(), None))
    sampling.begin()
    row = sampling.end(Repetition(phase="first", number=0, seconds=0.1))
    sampling.close()
    lacking = {name for name, value in row.figures.items() if value is None}
    assert lacking <= set(row.silent) and "power_mean_w" in lacking
    assert "reserved_peak_bytes" in row.silent
    assert all(reason.text for reason in row.silent.values())
