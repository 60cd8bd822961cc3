"""A machine in a file: what a probe wrote, planned for elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cardfit import api, cards, verbs
from cardfit.errors import BadFile, BadRequest
from cardfit.measure.probe import Probe, probe
from cardfit.measure.samplers.fake_nvml import FakeNvml
from cardfit.plan.machine import MAX_BYTES, read_machine
from cardfit.plan.place import place_of
from cardfit.plan.verdict import Host
from cardfit.request import Settings
from cardfit.units import GIB, MIB

CATALOG = cards.load()
PLAIN = Settings(offload="none", vae_tiling=False, vae_slicing=False)
LINK = {"pinned_bytes_per_s": 6e9, "paged_bytes_per_s": 3e9, "gen": 4, "lanes": 4}


def written(
    folder: Path,
    name: str = "NVIDIA GeForce RTX 4090",
    limit_bytes: int | None = None,
    **link: object,
) -> Path:
    """A probe of a machine with one card, as ``probe --json`` prints it, its disk read at 1 GB/s."""
    nvml = FakeNvml(
        nvmlDeviceGetName=name,
        nvmlDeviceGetMemoryInfo=SimpleNamespace(total=24564 * MIB, used=500 * MIB),
        nvmlSystemGetDriverVersion="580.1",
    )
    found = probe(folder, link=lambda _: link or LINK, nvml=nvml, disk_bytes=MIB)
    known = found.machine.model_copy(update={"ram_bytes": 64 * GIB, "ram_limit_bytes": limit_bytes})
    found = found.model_copy(update={"machine": known, "disk_read_bytes_per_s": 1e9})
    return kept(folder, found)


def kept(folder: Path, found: Probe) -> Path:
    file = folder / "machine.json"
    file.write_text(found.model_dump_json(by_alias=True, indent=1))
    return file


def test_what_was_probed_is_the_machine(tmp_path: Path) -> None:
    found = read_machine(written(tmp_path, limit_bytes=4 * GIB), CATALOG)
    (card,) = found.machine.cards
    assert card.id == "rtx-4090" and card.memory_bytes == 24564 * MIB
    assert found.machine.devices[0].used_bytes == 500 * MIB
    assert (found.machine.ram_bytes, found.machine.ram_limit_bytes) == (64 * GIB, 4 * GIB)
    assert found.links["rtx-4090"].pinned_bytes_per_s == 6e9
    assert found.host.disk_bytes_per_s == 1e9
    assert found.machine.notes == ()


def test_a_link_that_was_not_measured_is_the_listed_one(tmp_path: Path) -> None:
    assert read_machine(written(tmp_path, why="TimeoutExpired"), CATALOG).links == {}


def test_a_card_that_nobody_knows_is_planned_by_its_memory(tmp_path: Path) -> None:
    found = read_machine(written(tmp_path, name="NVIDIA Secret 1"), CATALOG)
    assert found.machine.cards[0].id.endswith("-here")
    assert [note.code for note in found.machine.notes] == ["card-unknown-here"]


def test_the_limit_of_its_container_is_the_ram_that_counts(tmp_path: Path) -> None:
    machine = read_machine(written(tmp_path, limit_bytes=4 * GIB), CATALOG).machine
    place = place_of(CATALOG, (), None, Host(), machine=machine)
    (target,) = place.targets
    assert (target.card, target.machine_ram_bytes, target.ram_of) == (
        "rtx-4090",
        4 * GIB,
        "container",
    )
    assert "plan-container-limit" in [note.code for note in place.notes]


def test_a_plan_for_it_has_its_card_and_loads_from_its_disk(tmp_path: Path) -> None:
    there = api.plan("sdxl-base", PLAIN, machine=written(tmp_path)).cards
    (usual,) = api.plan("sdxl-base", PLAIN, cards=["rtx-4090"]).cards
    assert [row.card for row in there] == ["rtx-4090"]
    assert there[0].load_seconds is not None and there[0].load_seconds.likely > 6.5
    assert usual.load_seconds is None and usual.seconds == there[0].seconds


def test_a_slower_link_takes_longer(tmp_path: Path) -> None:
    settings = Settings(offload="sequential", vae_tiling=False, vae_slicing=False)

    def seconds(file: Path | None) -> float:
        more = {"machine": file} if file else {"cards": ["rtx-4090"]}
        row = api.plan("stable-diffusion-1.5", settings, ram_bytes=64 * GIB, **more).cards[0]  # type: ignore[arg-type]
        assert row.seconds is not None
        return row.seconds.likely

    assert seconds(written(tmp_path)) > 2 * seconds(None)


def test_a_budget_is_checked_on_the_machine_where_it_names_no_other_card(tmp_path: Path) -> None:
    budget = tmp_path / "budget.yaml"
    budget.write_text(
        "settings: {offload: none, vae_tiling: false, vae_slicing: false}\n"
        "requests:\n"
        "  - {model: stable-diffusion-1.5, max_peak: 8GB}\n"
        "  - {model: stable-diffusion-1.5, card: rtx-4090, max_seconds: 60}\n"
        "  - {model: stable-diffusion-1.5, card: l4}\n"
    )
    found = verbs.check(budget, machine=written(tmp_path))
    assert found.kept
    assert [row.card for row in found.rows] == [None, "rtx-4090", "l4"]


def test_a_machine_and_this_machine_are_two_questions(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="--machine"):
        api.plan("sdxl-base", here=True, machine=written(tmp_path))


def test_a_machine_without_a_card_is_named(tmp_path: Path) -> None:
    found = Probe.model_validate_json(written(tmp_path).read_text())
    file = kept(tmp_path, found.model_copy(update={"cards": ()}))
    with pytest.raises(BadRequest, match="no NVIDIA card that could be read"):
        api.plan("sdxl-base", machine=file)
    answer = api.plan("sdxl-base", PLAIN, machine=file, cards=["l4"])
    assert "machine-no-card" in [note.code for note in answer.notes]
    with pytest.raises(BadRequest, match="no NVIDIA card"):
        verbs.readme("sdxl-base", machine=file)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema": "cardfit.probe/1"}', "x" * (MAX_BYTES + 1), "\udcff"],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "machine.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadFile, match=r"machine\.json"):
        read_machine(file, CATALOG)


def test_another_schema_is_named(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace("cardfit.probe/1", "cardfit.probe/9"))
    with pytest.raises(BadFile, match="probe/9"):
        read_machine(file, CATALOG)
