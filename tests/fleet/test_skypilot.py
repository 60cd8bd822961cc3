"""A plan as a SkyPilot task and as a script for ssh: the form, the candidates, and what the shell does with them."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from cardfit import cards
from cardfit.cards import table
from cardfit.cli.main import run
from cardfit.errors import BadRequest
from cardfit.fleet import skypilot
from cardfit.fleet.sample import RECORD, run_lines
from cardfit.plan.answer import Answer, Money, Seconds
from cardfit.report import remote
from cardfit.request import Settings
from cardfit.request.read import read_plan_file

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE / "skypilot_task.schema.json").read_text())

_spec = importlib.util.spec_from_file_location(
    "make_answer", HERE.parent / "report" / "make_answer.py"
)
assert _spec is not None and _spec.loader is not None
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)


def row(card: str, cost: float | None = None, peak: float = 10, currency: str = "USD"):
    found = made.row(card, card.upper(), 24, 22, peak, settings=Settings(), price=0.4)
    if cost is None:
        return found
    each = Money(amount=cost, currency=currency)
    return found.model_copy(
        update={"cost_per_output": each, "seconds": Seconds(low=5, likely=9, high=12)}
    )


def answer(*rows) -> Answer:
    return made.answer(rows)


def offered(found: Answer) -> list[str]:
    config = yaml.safe_load(remote.skypilot(found))
    return [name for each in config["resources"]["any_of"] for name in each["accelerators"]]


def test_the_task_has_the_form_that_skypilot_reads():
    text = remote.skypilot(answer(row("rtx-4090", 0.01), row("l4", 0.02), row("t4", 0.011)))
    config = yaml.safe_load(text)
    jsonschema.validate(config, SCHEMA)
    resources = config["resources"]
    # 75 GiB of files and outputs with a quarter more, and 40 GB for the rest
    assert resources["disk_size"] == 141
    assert resources["any_of"][0] == {"accelerators": {"RTX4090": 1}, "memory": "42+"}
    assert "cardfit run chosen.yaml" in config["run"]
    assert "--here --check" in config["run"]
    assert "sky launch" not in config["run"] + config["setup"]


def test_the_schema_refuses_what_is_wrong():
    config = yaml.safe_load(remote.skypilot(answer(row("rtx-4090", 0.01))))
    for change in ({"resources": {}}, {"name": "Has Blanks"}, {"runs": ""}, {"setup": 3}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(config | change, SCHEMA)


def test_candidates_are_those_that_fit_by_the_cost_of_an_output():
    found = answer(
        row("l4", 0.02),
        row("rtx-4090", 0.01),
        row("h100-sxm", 0.0201),  # more than twice the least
        row("rtx-3090", 0.001, peak=21.9),  # tight only
        row("rtx-5090", 0.001, peak=30),  # too small
        row("a40", 0.001, currency="EUR"),
        row("a10"),  # no cost
        row("l20", 0.01),  # no name
    )
    assert offered(found) == ["RTX4090", "L4"]
    head = " ".join(
        line[2:] for line in remote.skypilot(found).splitlines() if line.startswith("#")
    )
    assert "SkyPilot has no name for them (--as ssh runs there): L20" in head
    assert "costs more than 2 times the least, and SkyPilot goes by the hour: H100-SXM" in head
    assert "the cost of an output is not known: A40, A10" in head
    assert "RTX-4090: " in head and "$0.010 an output at $0.40 an hour" in head.replace(
        "$0.0100", "$0.010"
    )


def test_without_any_cost_every_card_that_fits_is_offered_and_no_name_twice():
    found = answer(row("v100-pcie-16gb"), row("v100-sxm2-16gb"))
    assert offered(found) == ["V100", "V100-SXM2"]
    assert "its time or price is not known" in remote.skypilot(found)


def test_nothing_that_fits_is_no_task(capsys, monkeypatch):
    none = answer(row("rtx-4090", peak=40), row("l20"))
    with pytest.raises(BadRequest, match="no card that SkyPilot has a name for"):
        remote.skypilot(none)
    monkeypatch.setattr("cardfit.api.plan", lambda *args, **more: none)
    assert run("plan svd --as skypilot".split()) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_prints_a_task_and_a_script(capsys, monkeypatch):
    one = answer(row("rtx-4090", 0.01))
    monkeypatch.setattr("cardfit.api.plan", lambda *args, **more: one)
    assert run("plan svd --as skypilot".split()) == 0
    jsonschema.validate(yaml.safe_load(capsys.readouterr().out), SCHEMA)
    assert run("plan svd --as ssh".split()) == 0
    assert capsys.readouterr().out.startswith("#!/bin/sh\n# ")


def test_the_request_in_the_script_is_the_request(tmp_path):
    hard = Settings(
        quantization={"transformer": "bnb-int8"}, alloc_conf="expandable_segments:True\nREQUEST\n"
    )
    found = answer(row("rtx-4090", 0.01)).model_copy(update={"settings": hard})
    lines = [line for line in run_lines(found) if "/bin/cardfit" not in line]
    ran = subprocess.run(
        ["sh"], input="\n".join(lines), text=True, cwd=tmp_path, capture_output=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    kept = read_plan_file(tmp_path / "request.yaml")
    assert kept.settings == hard
    assert kept.request.model_dump() == found.request.model_dump()


def test_the_script_for_ssh_goes_there_and_brings_the_record_back(tmp_path):
    """With an ssh that runs its script here, a scp that copies, and a pip and a cardfit that only write down."""
    tools, there = tmp_path / "tools", tmp_path / "there"
    tools.mkdir()
    there.mkdir()
    said = tmp_path / "said"
    fake = f'#!/bin/sh\necho "$(basename "$0") $*" >> {said}\n'
    python = (
        f"{fake}mkdir -p $3/bin\nfor name in pip cardfit; do cp {tools}/fake $3/bin/$name; done\n"
    )
    scripts = {
        "fake": fake + 'case "$*" in run*) echo "{}" ;; esac\n',
        "python3": python,
        "ssh": f'{fake}cd {there} && exec sh -c "$2"\n',
        "scp": f'{fake}cp {there}/"${{1#*:}}" "$2"\n',
    }
    for name, text in scripts.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    script = tmp_path / "sample.sh"
    script.write_text(remote.ssh(answer(row("rtx-4090", 0.01))))
    ran = subprocess.run(
        ["sh", script, "me@host"],
        cwd=tmp_path,
        env={"PATH": f"{tools}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    calls = said.read_text().splitlines()
    assert [call.split()[0] for call in calls] == [
        "ssh",
        "python3",
        "pip",
        "cardfit",
        "cardfit",
        "scp",
    ]
    assert "plan request.yaml --here --check" in calls[3] and "run chosen.yaml" in calls[4]
    assert (tmp_path / RECORD).read_text() == "{}\n"
    without = subprocess.run(["sh", script], cwd=tmp_path, capture_output=True)
    assert without.returncode != 0


def test_the_script_passes_shellcheck(tmp_path):
    script = tmp_path / "sample.sh"
    script.write_text(remote.ssh(answer(row("rtx-4090", 0.01))))
    beside = str(Path(sys.executable).parent)  # of an environment that nobody has entered
    found = shutil.which("shellcheck", path=os.pathsep.join([beside, os.environ["PATH"]]))
    assert found is not None
    ran = subprocess.run([found, script], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_every_name_belongs_to_a_card_and_has_a_source_and_a_date():
    catalog = cards.load()
    rows = table.read(skypilot.SHIPPED, columns=skypilot.COLUMNS, required=skypilot.COLUMNS)
    seen = set()
    for each in rows:
        assert each.text("card_id") in catalog
        assert "skypilot" in each.text("source")
        assert each.text("as_of") == "2026-12-03"
        pair = (each.text("card_id"), each.text("accelerator"))
        assert pair not in seen
        seen.add(pair)
    assert skypilot.names()["rtx-4090"] == ("RTX4090",)
