"""Samplers of the host: a process's memory and disk, its control group, and the pressure on the machine.

In: a process id and where proc and sys hang. Out: readings. The kernel's own high-water mark of a process is started
anew for every phase where that is allowed, so that a peak between two samples is not lost.
"""

from __future__ import annotations

import re
from pathlib import Path

from cardfit.measure.samplers.base import Figure, Reading, grown, last, peak
from cardfit.records.models import Reason
from cardfit.units import KIB

_NO_LIMIT = 2**60  # cgroup v1 writes "no limit" as a page-rounded 2**63
_TICKS = 100.0  # of /proc/PID/stat a second, on every Linux that torch runs on


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


class Process:
    """A process: resident bytes with the kernel's peak, proportional bytes, processor seconds, bytes from and to disk.

    Counters, and proportional bytes (PSS), which walk the page tables, are read where a phase begins and ends only.
    """

    def __init__(self, pid: int, root: Path = Path("/"), *, fresh: bool = True) -> None:
        self.folder = root / "proc" / str(pid)
        self._may = fresh  # start the kernel's high-water mark anew
        self.silent: dict[str, Reason] = {}
        self._fresh = False

    def mark(self) -> None:
        """Start the kernel's high-water mark anew."""
        if not self._may:
            return
        try:
            (self.folder / "clear_refs").write_text("5")
            self._fresh = True
        except OSError:
            self._fresh = False

    def read(self, border: bool = False) -> Reading:
        """What /proc says of the process."""
        status = _text(self.folder / "status")
        if status is None:
            self.silent = dict.fromkeys(
                ("rss", "cpu", "disk_read", "disk_written"), Reason.of("sampler-no-proc")
            )
            return {}
        found: dict[str, float] = {}
        for key, raw in (("VmRSS", "rss"), ("VmHWM", "rss_high"), ("VmSwap", "swap")):
            match = re.search(rf"^{key}:\s+(\d+) kB", status, re.MULTILINE)
            if match:
                found[raw] = float(match[1]) * KIB
        found["rss_peak"] = found.get("rss_high", 0.0) if self._fresh else found.get("rss", 0.0)
        if not found["rss_peak"]:
            del found["rss_peak"]
        if border:
            found |= self._disk() | self._cpu() | self._proportional()
        return found

    def _cpu(self) -> dict[str, float]:
        stat = _text(self.folder / "stat")
        if stat is None:
            return {}
        fields = stat.rpartition(")")[2].split()
        return {"cpu": (int(fields[11]) + int(fields[12])) / _TICKS}

    def _proportional(self) -> dict[str, float]:
        """Proportional bytes, which cost the process a moment to count."""
        rollup = _text(self.folder / "smaps_rollup")
        match = re.search(r"^Pss:\s+(\d+) kB", rollup or "", re.MULTILINE)
        if match is None:
            self.silent["pss"] = Reason.of("sampler-no-pss")
            return {}
        return {"pss": float(match[1]) * KIB}

    def close(self) -> None:
        """Nothing is held."""

    def _disk(self) -> dict[str, float]:
        text = _text(self.folder / "io")
        if text is None:
            why = Reason.of("sampler-no-io")
            self.silent |= {"disk_read": why, "disk_written": why}
            return {}
        values = dict(re.findall(r"^(\w+): (\d+)$", text, re.MULTILINE))
        return {
            "disk_read": float(values.get("read_bytes", 0)),
            "disk_written": float(values.get("write_bytes", 0)),
        }


class Cgroup:
    """The control group of a process, version 1 or 2: memory now, its own peak, its limit, kills for want of memory."""

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self.silent: dict[str, Reason] = {}
        self.version, self.folder = _group(pid, root)
        self._peak_before = 0.0
        if self.folder is None:
            self.silent = dict.fromkeys(
                ("cgroup", "cgroup_limit", "oom_kills"), Reason.of("sampler-no-cgroup")
            )

    def mark(self) -> None:
        """Remember the group's peak of all time: only one above it belongs to this phase."""
        self._peak_before = self._number(*_PEAK) or 0.0

    def read(self, border: bool = False) -> Reading:
        """What the group says."""
        if self.folder is None:
            return {}
        found: dict[str, float] = {}
        now, high = self._number(*_NOW), self._number(*_PEAK)
        if now is not None:
            found["cgroup"] = high if high is not None and high > self._peak_before else now
        else:
            self.silent["cgroup"] = Reason.of("sampler-no-cgroup")
        limit = self._number(*_LIMIT)
        if limit is not None and limit < _NO_LIMIT:
            found["cgroup_limit"] = limit
        else:
            self.silent["cgroup_limit"] = Reason.of("sampler-no-limit")
        kills = self._event("oom_kill")
        if kills is not None:
            found["oom_kills"] = kills
        else:
            self.silent["oom_kills"] = Reason.of("sampler-no-oom-events")
        return found

    def close(self) -> None:
        """Nothing is held."""

    def _number(self, first: str, second: str) -> float | None:
        if self.folder is None:
            return None
        text = (_text(self.folder / (second if self.version == 2 else first)) or "").strip()
        return float(text) if text.isdecimal() else None

    def _event(self, key: str) -> float | None:
        assert self.folder is not None
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        match = re.search(rf"^{key} (\d+)$", _text(self.folder / name) or "", re.MULTILINE)
        return float(match[1]) if match else None


_NOW = ("memory.usage_in_bytes", "memory.current")  # version 1, version 2
_PEAK = ("memory.max_usage_in_bytes", "memory.peak")
_LIMIT = ("memory.limit_in_bytes", "memory.max")


def _group(pid: int, root: Path) -> tuple[int, Path | None]:
    """The version and the folder of the process's memory group; the nearest one upwards that can be read."""
    for line in (_text(root / "proc" / str(pid) / "cgroup") or "").splitlines():
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        if "memory" in controllers.split(","):
            version, base, probe = 1, root / "sys/fs/cgroup/memory", _NOW[0]
        elif controllers == "":
            version, base, probe = 2, root / "sys/fs/cgroup", _NOW[1]
        else:
            continue
        steps = [step for step in group.split("/") if step not in ("", ".", "..")]
        for depth in range(len(steps), -1, -1):
            folder = base.joinpath(*steps[:depth])
            if (folder / probe).is_file():
                return version, folder
    return 0, None


class Pressure:
    """Pressure stall information of the machine: seconds in which work waited for memory, disk or a processor."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.folder = root / "proc/pressure"
        self.silent: dict[str, Reason] = {}

    def mark(self) -> None:
        """Counters go on."""

    def read(self, border: bool = False) -> Reading:
        """Totals since the machine was started, where a phase begins and ends."""
        if not border:
            return {}
        found: dict[str, float] = {}
        for resource in ("memory", "io", "cpu"):
            text = _text(self.folder / resource)
            if text is None:
                self.silent |= {
                    f"{resource}_some": Reason.of("sampler-no-psi"),
                    f"{resource}_full": Reason.of("sampler-no-psi"),
                }
                continue
            for kind, total in re.findall(r"^(some|full) .*total=(\d+)$", text, re.MULTILINE):
                found[f"{resource}_{kind}"] = int(total) / 1e6
        return found

    def close(self) -> None:
        """Nothing is held."""


FIGURES: dict[str, Figure] = {
    "rss_peak_bytes": Figure(
        "rss_peak", peak, "resident memory of the process, the kernel's own peak where allowed"
    ),
    "rss_seen_peak_bytes": Figure("rss", peak, "resident memory as sampled", per_stage=True),
    "pss_bytes": Figure("pss", peak, "proportional memory at the begin and end of the phase"),
    "swap_peak_bytes": Figure("swap", peak, "swapped memory of the process"),
    "cpu_seconds": Figure("cpu", grown, "processor seconds of the process"),
    "disk_read_bytes": Figure(
        "disk_read", grown, "bytes that the process caused to be read from disk"
    ),
    "disk_written_bytes": Figure(
        "disk_written", grown, "bytes that the process caused to be written to disk"
    ),
    "cgroup_peak_bytes": Figure("cgroup", peak, "memory of the control group, page cache included"),
    "cgroup_limit_bytes": Figure("cgroup_limit", last, "limit of the control group"),
    "cgroup_oom_kills": Figure("oom_kills", grown, "processes that the group's limit killed"),
    "memory_stall_some_seconds": Figure("memory_some", grown, "some work waited for memory"),
    "memory_stall_full_seconds": Figure("memory_full", grown, "all work waited for memory"),
    "io_stall_some_seconds": Figure("io_some", grown, "some work waited for disks"),
    "cpu_stall_some_seconds": Figure("cpu_some", grown, "some work waited for a processor"),
}
