"""The path of a Chromium for the browser tests: an installed one, else one that is installed now.

    python scripts/find_chromium.py          prints the path; exit 1 where none can be had

Debian's package when root, playwright's own download elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_INSTALL_S = 900


def installed() -> str | None:
    """The first Chromium on the path, or the one that playwright has downloaded."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is not None:
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.path.exists(path) else None  # noqa: PTH110


def install() -> None:
    """Install one; what goes wrong is said by the installer itself."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=False, timeout=_INSTALL_S)
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
    else:
        command = [sys.executable, "-m", "playwright", "install", "chromium"]
    subprocess.run(command, check=False, timeout=_INSTALL_S)


def find() -> str | None:
    """The path of a Chromium; None where there is none and none can be installed."""
    found = installed()
    if found is None:
        install()
        found = installed()
    return found


if __name__ == "__main__":
    path = find()
    print(path or "no chromium found, and none could be installed")
    sys.exit(path is None)
