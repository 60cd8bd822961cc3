"""Parts that keep tensors from one call to the next, and releases that do not have a module yet."""

from __future__ import annotations

import torch

from cardfit.library import load
from cardfit.library.build import build
from cardfit.trace import patches
from cardfit.trace.older import keeps_state
from cardfit.trace.recorder import Recorder


class Remembering(torch.nn.Module):
    """As a causal convolution of CogVideoX up to diffusers 0.30."""

    def __init__(self):
        super().__init__()
        self.conv_cache = None


def test_state_is_found_however_deep():
    assert keeps_state(torch.nn.Sequential(torch.nn.Sequential(Remembering())))
    assert not keeps_state(torch.nn.Sequential(torch.nn.Linear(2, 2)))


def test_todays_cogvideox_keeps_nothing():
    model = load("cogvideox-5b")
    assert not keeps_state(build(model.components["vae"], "bfloat16"))


def test_a_release_without_a_module_is_not_patched(monkeypatch):
    assert patches._found("transformers.transformer_of_tomorrow") is None
    monkeypatch.setattr(patches, "_found", lambda path: None)
    entered = False
    with patches.patches(Recorder()):
        entered = True
    assert entered
