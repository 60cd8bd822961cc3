"""What older releases of diffusers do otherwise, where the dry run has to know it.

In: a module that was built. Out: whether its calls depend on the calls before. A part that is called again with the
same shapes is traced once, which holds only where the part keeps nothing between calls. Left out: releases before 0.21.
"""

from __future__ import annotations

import torch

# CogVideoX's autoencoder keeps the last frames of a call in the module up to diffusers 0.30; since 0.31 they are handed
# from call to call as arguments.
_STATE = "conv_cache"


def keeps_state(module: torch.nn.Module) -> bool:
    """Whether a part of ``module`` holds tensors from one call to the next as attributes of its own.

    >>> layer = torch.nn.Identity()
    >>> keeps_state(layer)
    False
    >>> layer.conv_cache = None
    >>> keeps_state(torch.nn.Sequential(layer))
    True
    """
    return any(_STATE in vars(part) for part in module.modules())
