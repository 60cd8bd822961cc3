"""Hold `cardfit plan --as skypilot` to SkyPilot's own parser, in an environment of its own.

    python scripts/check_skypilot.py [FOLDER]

Makes an environment in FOLDER (a temporary one when left out; kept and used again when named), installs SkyPilot there,
and lets `sky.Task.from_yaml_config` read the tasks of a few plans. Nothing is launched, no cloud is asked. Ends with 1
where SkyPilot refuses a task or reads something else in it; with 3 where SkyPilot cannot be installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import yaml

import cardfit
from cardfit.report import remote
from cardfit.request import Request, Settings

ASKED = (
    (Request(model="flux.1-dev", width=1024, height=1024), Settings()),
    (Request(model="wan2.1-t2v-14b", width=832, height=480, num_frames=81), Settings()),
    (Request(model="sdxl-base", batch=4), Settings(dtype={"*": "float16"}, offload="none")),
)
READER = """
import json, sys, yaml, sky
task = sky.Task.from_yaml_config(yaml.safe_load(open(sys.argv[1])))
print(json.dumps({
    "name": task.name,
    "accelerators": sorted(name for each in task.resources for name in each.accelerators),
    "disk_size": sorted({each.disk_size for each in task.resources}),
    "down": all(each.autostop_config.down for each in task.resources),
    "run": task.run,
    "setup": task.setup,
}))
"""
REFUSED, NOT_INSTALLED = 1, 3


def environment(folder: Path) -> Path | None:
    """The Python of an environment with SkyPilot in ``folder``; None where it cannot be installed."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "skypilot"]
    return python if subprocess.run(install).returncode == 0 else None


def read(python: Path, folder: Path, text: str) -> dict[str, object]:
    """What SkyPilot reads in ``text``. Raises RuntimeError with its own words where it refuses."""
    file = folder / "task.yaml"
    file.write_text(text, encoding="utf-8")
    home = folder / "home"  # SkyPilot keeps files there
    home.mkdir(exist_ok=True)
    ran = subprocess.run(
        [python, "-c", READER, file],
        capture_output=True,
        text=True,
        env={
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        },
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip().splitlines()[-1])
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return found


def check(python: Path, folder: Path) -> int:
    """0 where SkyPilot reads every task as it was written."""
    code = 0
    for request, settings in ASKED:
        text = remote.skypilot(cardfit.plan(request, settings))
        meant = yaml.safe_load(text)
        resources = meant["resources"]
        names = sorted(name for each in resources["any_of"] for name in each["accelerators"])
        wanted = {
            "name": meant["name"],
            "accelerators": names,
            "disk_size": [resources["disk_size"]],
            "down": True,
            "run": meant["run"],
            "setup": meant["setup"],
        }
        try:
            found = read(python, folder, text)
        except RuntimeError as error:
            found = {"error": str(error)}
        differing = [key for key in wanted if found.get(key) != wanted[key]]
        print(f"{request.model}: {len(names)} accelerators, {'refused' if differing else 'read'}")
        if differing:
            print(f"  {found.get('error') or differing}")
            code = REFUSED
    return code


def main() -> int:
    """Run the check; the exit code."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        python = environment(folder)
        if python is None:
            print("SkyPilot could not be installed, so nothing was checked.")
            return NOT_INSTALLED
        return check(python, folder)


if __name__ == "__main__":
    sys.exit(main())
