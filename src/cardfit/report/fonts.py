"""Whether a picture can be read: a PNG holds shapes, and takes them from the fonts of this machine.

In: a language. Out: a sentence for a machine that has no font with its signs; None where it has one, or cannot say.
"""

from __future__ import annotations

import shutil
import subprocess

from cardfit.messages import say

_FONTS = {"ja": "Noto Sans CJK JP", "ko": "Noto Sans CJK KR"}  # free, and in every distribution
_SECONDS = 20.0


def missing(language: str) -> str | None:
    """What to say of a PNG in ``language``: fontconfig (Linux) is asked; where it is not at hand nothing is said."""
    asks = shutil.which("fc-list")
    if language not in _FONTS or asks is None:
        return None
    try:
        asked = subprocess.run(
            [asks, f":lang={language}", "family"],
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if asked.stdout.strip():
        return None
    return say("picture-font", {"language": language, "font": _FONTS[language]})
