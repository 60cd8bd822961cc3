"""Every component of every model, built without weights, has the parameters that the library records."""

from __future__ import annotations

import json

import pytest

from cardfit.library import ComponentSpec, all_models

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from cardfit.library.build import build  # noqa: E402


def _distinct() -> dict[str, tuple[str, ComponentSpec]]:
    """One example of each class and config; models share their text encoders and VAEs."""
    found: dict[str, tuple[str, ComponentSpec]] = {}
    for model in all_models():
        for name, spec in model.components.items():
            if not spec.external:
                key = spec.class_path + json.dumps(spec.config, sort_keys=True)
                found.setdefault(key, (f"{model.id}:{name}", spec))
    return found


DISTINCT = list(_distinct().values())


def test_same_class_and_config_have_the_same_recorded_count() -> None:
    counts: dict[str, set[int]] = {}
    for model in all_models():
        for spec in model.components.values():
            key = spec.class_path + json.dumps(spec.config, sort_keys=True)
            counts.setdefault(key, set()).add(spec.params)
    assert all(len(values) == 1 for values in counts.values())


@pytest.mark.filterwarnings("ignore")  # of the libraries that are built, not ours
@pytest.mark.parametrize(("name", "spec"), DISTINCT, ids=[name for name, _ in DISTINCT])
def test_parameters_as_recorded(name: str, spec: ComponentSpec) -> None:
    module = build(spec, spec.recommended_dtype)
    parameters = {id(p): p for p in module.parameters()}.values()
    assert sum(p.numel() for p in parameters) == spec.params
    assert all(p.device.type == "meta" for p in parameters)
    persistent = {
        f"{path}.{name}" if path else name
        for path, owner in module.named_modules()
        for name in owner._buffers
        if name not in owner._non_persistent_buffers_set
    }
    held = sum(b.numel() for n, b in module.named_buffers() if n in persistent)
    if spec.persistent_buffers:
        assert held == spec.persistent_buffers
