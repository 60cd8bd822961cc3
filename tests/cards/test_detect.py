"""Local detection against a fake driver and fake proc and sys trees."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cardfit import cards
from cardfit.cards import detect
from cardfit.errors import MissingExtra
from cardfit.units import GIB, MIB

CATALOG = cards.load()


class FakeNvml:
    """A driver with the given boards: name, MiB, and what else it would say."""

    class NVMLError(Exception):
        """Any refusal."""

    def __init__(self, *boards: dict[str, Any], working: bool = True) -> None:
        self.boards = boards
        self.working = working
        self.open = 0

    def nvmlInit(self) -> None:
        if not self.working:
            raise self.NVMLError
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.65.06"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self._of(self.boards[index], "name") and self.boards[index]

    def nvmlDeviceGetName(self, handle: dict[str, Any]) -> Any:
        return handle["name"]

    def nvmlDeviceGetMemoryInfo(self, handle: dict[str, Any]) -> Any:
        return SimpleNamespace(total=handle["mib"] * MIB, used=handle.get("used", 500) * MIB)

    def nvmlDeviceGetEccMode(self, handle: dict[str, Any]) -> Any:
        return self._of(handle, "ecc")

    def nvmlDeviceGetCudaComputeCapability(self, handle: dict[str, Any]) -> Any:
        return self._of(handle, "capability")

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: dict[str, Any]) -> Any:
        return self._of(handle, "gen")

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: dict[str, Any]) -> Any:
        return self._of(handle, "lanes")

    def _of(self, handle: dict[str, Any], key: str) -> Any:
        if handle.get(key) is None:
            raise self.NVMLError
        return handle[key]


def look(tmp_path: Path, *boards: dict[str, Any]) -> cards.Machine:
    nvml = FakeNvml(*boards)
    machine = cards.here(
        nvml=nvml, ram=lambda: 64 * GIB, root=tmp_path, folder=tmp_path, system="Linux"
    )
    assert nvml.open == 0
    assert machine is not None
    return machine


def test_a_plain_machine(tmp_path: Path) -> None:
    board = {"name": "NVIDIA GeForce RTX 4090", "mib": 24564, "used": 700, "gen": 1, "lanes": 16}
    machine = look(tmp_path, board)
    assert machine.cards == (CATALOG["rtx-4090"],)
    assert cards.usable(machine.cards[0]).basis == "published"
    device = machine.devices[0]
    assert (device.pcie_gen, device.pcie_lanes, device.used_bytes) == (1, 16, 700 * MIB)
    assert device.ecc is None
    assert (machine.ram_bytes, machine.ram_limit_bytes) == (64 * GIB, None)
    assert machine.disk_free_bytes is not None and machine.disk_free_bytes > 0
    assert (machine.os, machine.driver, machine.notes) == ("linux", "580.65.06", ())


@pytest.mark.parametrize(
    ("name", "mib", "card_id"),
    [
        ("NVIDIA GeForce RTX 4090", 49140, "rtx-4090-48gb"),
        ("NVIDIA RTX A6000", 49140, "rtx-a6000"),
        ("NVIDIA RTX A6000", 46068, "rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", 49140, "rtx-6000-ada"),
        ("NVIDIA L4", 23034, "l4"),
        ("NVIDIA A10G", 23028, "a10g"),
        ("Tesla T4", 15360, "t4"),
        ("Tesla V100-SXM2-32GB", 32510, "v100-sxm2-32gb"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm-40gb"),
        ("NVIDIA A100 80GB PCIe", 81920, "a100-pcie-80gb"),
        ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm"),
        ("NVIDIA H100 NVL", 95830, "h100-nvl"),
        ("NVIDIA H200", 143771, "h200-sxm"),
        ("NVIDIA B200", 183359, "b200"),
        ("NVIDIA GeForce RTX 3060", 12288, "rtx-3060-12gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "rtx-pro-6000-blackwell-server"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            97887,
            "rtx-pro-6000-blackwell-max-q",
        ),
    ],
)
def test_names_of_the_driver(name: str, mib: int, card_id: str) -> None:
    card, note = detect.identify(CATALOG, name, mib * MIB)
    assert card.id == card_id
    assert note is None


def test_error_correction_is_in_the_drivers_figure(tmp_path: Path) -> None:
    machine = look(tmp_path, {"name": "NVIDIA RTX A6000", "mib": 49140, "ecc": (0, 0)})
    assert machine.devices[0].ecc is False
    assert cards.driver_bytes(machine.cards[0]) == 49140 * MIB


def test_a_modified_board_keeps_its_rates_and_gets_its_memory(tmp_path: Path) -> None:
    machine = look(tmp_path, {"name": "NVIDIA GeForce RTX 4080 SUPER", "mib": 32760})
    card = machine.cards[0]
    assert card.id not in CATALOG
    assert card.memory_bytes == 32760 * MIB
    assert card.flop_per_s == CATALOG["rtx-4080-super"].flop_per_s
    assert cards.usable(card).basis == "rule"
    assert [note.code for note in machine.notes] == ["card-modified-here"]
    assert "32.0 GiB" in machine.notes[0].text


def test_an_unknown_board_has_memory_but_no_rates(tmp_path: Path) -> None:
    board = {"name": "NVIDIA Quantum 1", "mib": 65536, "capability": (13, 0)}
    machine = look(tmp_path, board)
    card = machine.cards[0]
    assert (card.compute_capability, card.flop_per_s) == ("13.0", {})
    assert cards.unverified_reason(card) is None
    assert cards.rates_missing(card) is not None
    assert [note.code for note in machine.notes] == ["card-unknown-here"]


def test_an_unreadable_board_is_left_out_aloud(tmp_path: Path) -> None:
    machine = look(tmp_path, {"mib": 1}, {"name": b"NVIDIA L4", "mib": 23034})
    assert [card.id for card in machine.cards] == ["l4"]
    assert machine.devices[0].index == 1
    assert machine.notes[0].args == {"index": 0}


def test_no_card_and_no_driver_are_none(tmp_path: Path) -> None:
    assert cards.here(nvml=FakeNvml(), root=tmp_path) is None
    assert cards.here(nvml=FakeNvml(working=False), root=tmp_path) is None
    assert "--card" in cards.none_found().text


def test_a_missing_extra_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MissingExtra, match=r"pip install 'cardfit\[run\]'"):
        cards.here()


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_d_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_ram_from_proc(tmp_path: Path) -> None:
    tree(tmp_path, proc__meminfo="MemFree: 1 kB\nMemTotal:       16384000 kB\n")
    assert detect.ram_bytes(tmp_path) == 16384000 * 1024
    assert detect.ram_bytes(tmp_path / "nowhere") is None
    ram = detect.ram_bytes()
    assert ram is None or ram > 0


def test_cgroup_version_2_takes_the_tightest_on_the_way_up(tmp_path: Path) -> None:
    tree(
        tmp_path,
        proc__self__cgroup="0::/pods/mine\n",
        sys__fs__cgroup__pods__memory_d_max=f"{8 * GIB}\n",
        sys__fs__cgroup__pods__mine__memory_d_max="max\n",
    )
    assert detect.ram_limit_bytes(tmp_path) == 8 * GIB


def test_cgroup_version_2_inside_a_container(tmp_path: Path) -> None:
    tree(tmp_path, proc__self__cgroup="0::/\n", sys__fs__cgroup__memory_d_max=f"{4 * GIB}\n")
    assert detect.ram_limit_bytes(tmp_path) == 4 * GIB


def test_cgroup_version_1(tmp_path: Path) -> None:
    tree(
        tmp_path,
        proc__self__cgroup="5:cpu,cpuacct:/a\n4:memory:/box\n",
        sys__fs__cgroup__memory__memory_d_limit_in_bytes="9223372036854771712\n",
        sys__fs__cgroup__memory__box__memory_d_limit_in_bytes=f"{2 * GIB}\n",
    )
    assert detect.ram_limit_bytes(tmp_path) == 2 * GIB
    (tmp_path / "sys/fs/cgroup/memory/box/memory.limit_in_bytes").unlink()
    assert detect.ram_limit_bytes(tmp_path) is None


def test_no_control_groups_mean_no_limit(tmp_path: Path) -> None:
    assert detect.ram_limit_bytes(tmp_path) is None
    tree(tmp_path, proc__self__cgroup="nonsense\n\n0::/../..\n")
    assert detect.ram_limit_bytes(tmp_path) is None
