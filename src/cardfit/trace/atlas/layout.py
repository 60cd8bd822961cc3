"""What the files of the atlas agree on."""

from __future__ import annotations

LAYOUT = 2  # of a file; raised when what is written changes
# The variables of a formula: outputs at once, height and width in steps of the grid, latent frames beyond the
# first, denoising steps.
VARIABLES = ("batch", "height", "width", "frames", "steps")
# In the ids of a timeline: the storage is of an earlier turn of a repeated segment. One times this is the first turn,
# m + 1 times the turn m before the last.
EARLY = 1 << 40
