"""The two files of an assignment: shots and machines, and every way to get them wrong."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from cardfit import cards
from cardfit.errors import CardfitError
from cardfit.fleet.farm import kinds_for_rent, read_farm
from cardfit.fleet.shots import read_shots
from cardfit.measure.probe import probe
from cardfit.measure.samplers.fake_nvml import FakeNvml
from cardfit.offers import load as load_offers
from cardfit.units import GIB, MIB

CATALOG = cards.load()
MONDAY = datetime(2026, 12, 7, 18)


def file(folder: Path, text: str) -> Path:
    path = folder / "file.yaml"
    path.write_text(text, encoding="utf-8")
    return path


SHOTS = """
settings: {vae_tiling: false}
sequences:
  opening: {keep_same_card: true, deadline: 2026-12-11}
shots:
  - {id: op_010, model: flux.1-dev, width: 1024, sequence: opening, count: 5, batch: 2}
  - id: op_020
    model: flux.1-dev
    sequence: opening
    deadline: 2026-12-10 18:00:00
    settings: {offload: model}
  - {id: last, model: svd}
"""


def test_shots_are_read_with_what_holds_for_their_sequence(tmp_path):
    found = read_shots(file(tmp_path, SHOTS))
    first, second, last = found.shots
    assert (first.runs, first.request.width, first.request.batch) == (3, 1024, 2)
    assert found.deadline_of(first) == datetime(2026, 12, 12)
    assert found.deadline_of(second) == datetime(2026, 12, 10, 18)
    assert found.deadline_of(last) is None
    assert (found.kept(first), found.kept(last)) == ("opening", None)
    assert found.settings_of(second).offload == "model"
    assert found.settings_of(second).vae_tiling is False


def test_a_bare_list_will_do(tmp_path):
    (only,) = read_shots(file(tmp_path, "- {id: a, model: svd}\n")).shots
    assert (only.id, only.model, only.count) == ("a", "svd", 1)
    (machine,) = read_farm(file(tmp_path, "- {name: a, card: l4}\n"), CATALOG, MONDAY)
    assert machine.name == "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a list of shots"),
        ("shots: []", "no shots"),
        ("shots: 3", "no shots"),
        ("- 3", "line 1: found value, needs a shot"),
        ("- {id: a}", "model is missing"),
        ("- {model: svd}", "id is missing"),
        ("- {id: a, model: svd}\n- {id: a, model: svd}", "id a stands twice"),
        ('- {id: "=1+1", model: svd}', "id is"),
        ("- {id: a, model: svd, count: 0}", "at least 1"),
        ("- {id: a, model: svd, widht: 4}", "did you mean width"),
        ("- {id: a, model: svd, deadline: 5}", "line 1: deadline is 5; give a date or a time"),
        ("- {id: a, model: svd, deadline: 2026-13-45}", "not YAML"),
        ("- {id: a, model: svd, runtime: comfyui}", "Leave runtime out"),
        ("- {id: a, model: 2026-12-01}", "short text"),
        ("shots: [{id: a, model: svd}]\nsequences: {x: {}}", "no shot belongs to the sequence x"),
        ("shots: [{id: a, model: svd}]\nsequences: [1]", "needs a mapping"),
        ("shots: [{id: a, model: svd, sequence: x}]\nsequences: {x: 1}", "x: found value"),
        (
            "shots: [{id: a, model: svd, sequence: x}]\nsequences: {x: {keep: true}}",
            "keep: no such field",
        ),
        ("- !!python/object:os.system {}", "refused"),
        ("shots: [{id: a, model: svd}]\nfoo: 1", "foo: no such field"),
    ],
)
def test_shots_that_cannot_be_read(tmp_path, text, said):
    with pytest.raises(CardfitError) as error:
        read_shots(file(tmp_path, text))
    assert said in str(error.value)


def test_dates_stay_refused_where_nobody_asked_for_them(tmp_path):
    from cardfit.request.read import read_plan_file

    with pytest.raises(CardfitError, match="is refused"):
        read_plan_file(file(tmp_path, "request: {model: 2026-12-01}"))


FARM = """
machines:
  - {name: alpha, card: RTX 4090, count: 2, ram: 64GB, disk: 2TB, daily: "19:00-08:00"}
  - {name: beta, card: rtx-4090, ram: 64GB, disk: 2TB, price_per_hour: {amount: 0.4, currency: EUR}}
  - {name: gamma, probe: probes/gamma.json, windows: [{until: 2026-12-08}]}
"""


def probed(folder: Path, used: int = 500, ram_limit: int | None = None) -> None:
    nvml = FakeNvml(
        nvmlDeviceGetName="NVIDIA GeForce RTX 4090",
        nvmlDeviceGetMemoryInfo=SimpleNamespace(total=24564 * MIB, used=used * MIB),
        nvmlSystemGetDriverVersion="580.1",
    )
    rates = {"pinned_bytes_per_s": 6e9, "paged_bytes_per_s": 3e9, "gen": 4, "lanes": 4}
    found = probe(folder, link=lambda _: rates, nvml=nvml, disk_bytes=MIB)
    ram = {"ram_bytes": 64 * GIB, "ram_limit_bytes": ram_limit}
    found = found.model_copy(
        update={
            "machine": found.machine.model_copy(update=ram),
            "cards": found.cards * 2,
            "disk_read_bytes_per_s": 1e9,
        }
    )
    target = folder / "probes" / "gamma.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(found.model_dump_json(by_alias=True))


def test_machines_in_a_few_words_and_probed(tmp_path):
    probed(tmp_path, ram_limit=32 * GIB)
    alpha, beta, gamma = read_farm(file(tmp_path, FARM), CATALOG, MONDAY)
    assert len(alpha.kinds) == 2 and alpha.kinds[0] == alpha.kinds[1] == beta.kinds[0]
    assert alpha.kinds[0].target.card == "rtx-4090" and alpha.ram_bytes == 64 * GIB
    assert alpha.kinds[0].host.disk_bytes == 2 * 10**12
    assert alpha.spans[0] == (3600.0, 14 * 3600.0)
    assert beta.price_per_hour is not None and beta.price_per_hour.currency == "EUR"
    assert len(gamma.kinds) == 2 and gamma.ram_bytes == 32 * GIB
    assert gamma.spans == ((0.0, 30 * 3600.0),)
    kind = gamma.kinds[0]
    assert kind != beta.kinds[0] and kind.probed is not None
    assert kind.target.ram_of == "container"
    assert "plan-container-limit" in [note.code for note in gamma.notes]


def test_what_others_hold_of_a_probed_card_counts(tmp_path):
    probed(tmp_path)
    free = read_farm(file(tmp_path, FARM), CATALOG, MONDAY)[2].kinds[0].target.usable
    probed(tmp_path, used=9000)
    taken = read_farm(file(tmp_path, FARM), CATALOG, MONDAY)[2].kinds[0].target.usable
    assert free is not None and taken is not None
    assert free.likely - taken.likely > 8000 * MIB


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a list of machines"),
        ("machines: {}", "no machines"),
        ("- 3", "needs a machine"),
        ("- {name: a}", "a needs either probe"),
        ("- {name: a, card: l4, probe: x.json}", "a needs either probe"),
        ("- {name: a, probe: x.json, ram: 64GB}", "the probe says ram already"),
        ("- {name: a, probe: nowhere.json}", "cannot be read"),
        ("- {name: a, card: rtx-99999}", "line 1: rtx-99999"),
        ("- {name: a, card: l4, ram: 64}", "ram is 64"),
        ("- {name: a, card: l4, ram: lots}", "lots is not a size"),
        ("- {name: a, card: l4, disk: -1GB}", "-1GB is not a size"),
        ('- {name: a, card: l4, daily: "7pm"}', "daily is 7pm"),
        ("- {name: a, card: l4, count: 65}", "at most 64"),
        ("- {name: a, card: l4}\n- {name: a, card: l4}", "name a stands twice"),
        ("- {name: a, card: l4, windows: [{from: 18:00}]}", "give a date or a time"),
        ("- {name: a, card: l4, price_per_hour: 4}", "price_per_hour is 4"),
    ],
)
def test_machines_that_cannot_be_read(tmp_path, text, said):
    with pytest.raises(CardfitError) as error:
        read_farm(file(tmp_path, text), CATALOG, MONDAY)
    assert said in str(error.value)


def test_a_probe_without_a_card_is_refused(tmp_path):
    probed(tmp_path)
    target = tmp_path / "probes" / "gamma.json"
    from cardfit.measure.probe import Probe

    found = Probe.model_validate_json(target.read_text()).model_copy(update={"cards": ()})
    target.write_text(found.model_dump_json(by_alias=True))
    with pytest.raises(CardfitError, match="no NVIDIA card"):
        read_farm(file(tmp_path, FARM), CATALOG, MONDAY)


def test_cards_for_rent_are_by_the_hour_in_one_currency():
    found = kinds_for_rent(CATALOG, load_offers(cards=CATALOG))
    assert len(found) > 10
    offers = [offer for each in found for offer in each.target.offers]
    assert {offer.period for offer in offers} == {"hour"}
    assert len({offer.price.currency for offer in offers}) == 1


def test_the_files_of_the_page_are_read(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "fleet-assign.md").read_text(encoding="utf-8")
    shots, farm = re.findall(r"```yaml\n(.*?)```", text, re.S)
    assert [shot.id for shot in read_shots(file(tmp_path, shots)).shots] == [
        "op_010",
        "op_020",
        "stills",
    ]
    probed(tmp_path)
    (tmp_path / "probes" / "gamma.json").rename(tmp_path / "alpha.json")
    names = [each.name for each in read_farm(file(tmp_path, farm), CATALOG, MONDAY)]
    assert names == ["alpha", "beta", "desk", "lent"]
