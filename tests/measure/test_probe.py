"""This machine and a made one, and what a listing says of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cardfit import cards
from cardfit.errors import BadFile, BadRequest, UnknownCard
from cardfit.measure.probe import Listed, container, disk_rates, probe
from cardfit.measure.probing import probe as verb
from cardfit.measure.samplers.fake_nvml import FakeNvml
from cardfit.records.models import Reason
from cardfit.units import GIB, MIB

CATALOG = cards.load()


def fake(**more: Any) -> FakeNvml:
    return FakeNvml(
        nvmlDeviceGetName="NVIDIA GeForce RTX 4090",
        nvmlDeviceGetMemoryInfo=SimpleNamespace(total=24564 * MIB, used=500 * MIB),
        nvmlDeviceGetCurrPcieLinkGeneration=1,
        nvmlDeviceGetCurrPcieLinkWidth=4,
        nvmlSystemGetDriverVersion="580.1",
        nvmlDeviceGetComputeRunningProcesses=[[1, 2, 3]],
        **more,
    )


def test_this_machine(tmp_path: Path) -> None:
    found = probe(tmp_path, disk_bytes=4 * MIB)
    assert found.machine.ram_bytes and found.machine.cores
    assert found.disk_write_bytes_per_s and found.disk_read_bytes_per_s
    assert not list(tmp_path.iterdir())
    assert found.cards or "cards" in found.silent
    assert found.against == ()


def test_less_than_listed(tmp_path: Path) -> None:
    link = {"pinned_bytes_per_s": 6.5e9, "paged_bytes_per_s": 3e9, "gen": 4, "lanes": 4}
    listed = Listed.of(None, CATALOG["rtx-4090"], ram_bytes=2**50)
    found = probe(tmp_path, listed=listed, link=lambda _: link, nvml=fake(), disk_bytes=MIB)
    (card,) = found.cards
    assert (card.card, card.tenants, card.link.gen, card.link.lanes) == ("rtx-4090", 3, 4, 4)
    assert [each.what for each in found.less] == ["link_lanes", "link_rate", "ram"]
    assert found.less[0].text.text == "link x4, not x16"
    assert [each.what for each in found.against if not each.less] == ["card", "memory", "link_gen"]


def test_an_idle_link_is_not_held_against_the_machine(tmp_path: Path) -> None:
    listed = Listed.of(None, CATALOG["rtx-4090"], lanes=4)
    found = probe(
        tmp_path,
        listed=listed,
        link=lambda _: {"why": "TimeoutExpired"},
        nvml=fake(),
        disk_bytes=MIB,
    )
    assert found.cards[0].link.gen == 1 and found.less == ()
    assert "TimeoutExpired" in found.silent["link_0"].text


def test_another_card_than_listed(tmp_path: Path) -> None:
    listed = Listed.of(None, CATALOG["h200-sxm"])
    found = probe(tmp_path, listed=listed, link=lambda _: {}, nvml=fake(), disk_bytes=MIB)
    assert found.less[0].what == "card" and "RTX 4090" in found.less[0].text.text


def test_a_full_and_an_unwritable_disk(tmp_path: Path) -> None:
    silent: dict[str, Reason] = {}
    assert disk_rates(tmp_path, 2**60, silent) == (None, None) and "disk" in silent
    with pytest.raises(BadFile, match="Name a folder on the disk that counts"):
        disk_rates(tmp_path / "none" / "deeper", 0, {})


def test_what_a_container_allows() -> None:
    assert container({"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}).video is False
    assert container({"NVIDIA_DRIVER_CAPABILITIES": "all"}).video is True
    assert container({}).video is None
    assert container({}, Path("/nowhere/at/all")).shared_memory_bytes is None


def test_what_it_is_held_against_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UnknownCard):
        verb("rtx-99999", folder=tmp_path)
    with pytest.raises(BadRequest, match="nobody offers no rtx-4090. These do"):
        verb("nobody/rtx-4090", folder=tmp_path)
    assert Listed.of(None, None, ram_bytes=GIB).ram_bytes == GIB
