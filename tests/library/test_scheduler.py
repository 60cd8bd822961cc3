"""Every scheduler constructs from its recorded config and steps as often as the model's default says."""

from __future__ import annotations

import importlib
import inspect
import math

import pytest

from cardfit.library import Model, all_models

pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")


@pytest.mark.filterwarnings("ignore")  # of the library, not ours
@pytest.mark.parametrize("model", all_models(), ids=lambda model: model.id)
def test_scheduler_takes_the_default_steps(model: Model) -> None:
    package, _, name = model.scheduler.class_path.rpartition(".")
    kind = getattr(importlib.import_module(package), name)
    assert set(model.scheduler.config) <= set(inspect.signature(kind.__init__).parameters)
    scheduler = kind.from_config(model.scheduler.config)
    shift = {"mu": 1.0} if model.scheduler.config.get("use_dynamic_shifting") else {}
    scheduler.set_timesteps(model.defaults.num_inference_steps, **shift)
    # PNDM takes its second step twice; SCM's last time is where it ends, not a step
    extra = 1 if name in ("PNDMScheduler", "SCMScheduler") else 0
    assert len(scheduler.timesteps) == model.defaults.num_inference_steps + extra
    assert all(math.isfinite(float(step)) for step in scheduler.timesteps)


@pytest.mark.parametrize("model", all_models(), ids=lambda model: model.id)
def test_pipeline_classes_and_their_arguments_exist(model: Model) -> None:
    if not model.pipeline_in_diffusers:
        assert not hasattr(diffusers, model.pipeline)
        return
    for task in model.tasks:
        kind = getattr(diffusers, model.pipeline_for(task))
        constructor = set(inspect.signature(kind.__init__).parameters)
        counted = {name for name, part in model.components.items() if part.counted}
        assert counted <= constructor, (model.id, task)
        call = inspect.signature(kind.__call__).parameters
        argument = model.defaults.guidance_argument
        assert argument in constructor if argument == "guider" else argument in call
    main = getattr(diffusers, model.pipeline)
    assert set(model.pipeline_config) <= set(inspect.signature(main.__init__).parameters)
    assert set(model.call) <= set(inspect.signature(main.__call__).parameters)
    takes_chunks = "decode_chunk_size" in inspect.signature(main.__call__).parameters
    assert model.vae.decode_chunk_size == takes_chunks


@pytest.mark.parametrize("model", all_models(), ids=lambda model: model.id)
def test_vae_switches_exist_as_recorded(model: Model) -> None:
    package, _, name = model.components[model.vae.component].class_path.rpartition(".")
    kind = getattr(importlib.import_module(package), name)
    source = inspect.getsource(kind)
    tiles = any(text in source for text in ("use_tiling", "_use_tiling"))
    slices = "use_slicing" in source
    assert (model.vae.tiling, model.vae.slicing) == (tiles, slices)
