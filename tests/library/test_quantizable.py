"""Which component takes which scheme, and what is said of one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from cardfit.errors import BadRequest
from cardfit.library.load import all_models, load
from cardfit.library.quantizable import SINGLE_FILE, allowed_schemes
from cardfit.library.rules import settings_allowed
from cardfit.request import QUANTIZATIONS, Settings


def refused(name: str, **fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        settings_allowed(load(name), Settings.model_validate(fields))
    return caught.value


def test_a_denoiser_of_one_file_takes_every_scheme() -> None:
    flux = load("flux").components["transformer"]
    assert allowed_schemes("transformer", flux, "bfloat16") == QUANTIZATIONS
    assert allowed_schemes("transformer", flux, "float32") == ("none",)
    settings = {name: name for name in QUANTIZATIONS}
    for scheme in settings:
        settings_allowed(
            load("flux"), Settings.model_validate({"quantization": {"transformer": scheme}})
        )


@pytest.mark.parametrize(
    ("model", "component", "scheme", "said"),
    [
        ("flux", "text_encoder_2", "gguf-q8_0", "T5EncoderModel"),
        ("flux", "text_encoder_2", "svdq-int4", "T5EncoderModel"),
        ("flux", "vae", "bnb-nf4", "AutoencoderKL"),
        ("cogvideox-5b", "transformer", "gguf-q4_k", "CogVideoXTransformer3DModel"),
        ("sdxl", "unet", "svdq-int4", "UNet2DConditionModel"),
    ],
)
def test_a_scheme_that_a_component_cannot_take(
    model: str, component: str, scheme: str, said: str
) -> None:
    error = refused(model, quantization={component: scheme})
    assert error.code == "quantization-not-taken"
    text = str(error)
    assert said in text
    assert scheme in text.partition("Allowed")[0]
    allowed = text.partition("Allowed: ")[2]
    assert "none, fp8-layerwise" in allowed
    assert scheme not in allowed


@pytest.mark.parametrize("scheme", ["fp8-layerwise", "bnb-int8", "torchao-int8", "gguf-q8_0"])
def test_a_component_in_float32_takes_none(scheme: str) -> None:
    error = refused("flux", dtype={"transformer": "float32"}, quantization={"transformer": scheme})
    assert error.code == "quantization-of-fp32"
    assert all(word in str(error) for word in (scheme, "transformer", "float32", "Allowed: none"))
    bare = refused("flux", dtype={"*": "float32"}, quantization={"transformer": scheme})
    assert bare.code == error.code
    own = {"*": "float32", "transformer": "bfloat16"}
    given = Settings.model_validate({"dtype": own, "quantization": {"transformer": scheme}})
    settings_allowed(load("flux"), given)


@pytest.mark.parametrize("offload", ["sequential", "group-block", "group-leaf"])
@pytest.mark.parametrize("scheme", ["bnb-int8", "bnb-nf4"])
def test_bitsandbytes_moves_as_a_whole_only(scheme: str, offload: str) -> None:
    error = refused("flux", offload=offload, quantization={"transformer": scheme})
    assert error.code == "quantization-with-offload"
    assert all(word in str(error) for word in (scheme, offload, "none, model"))


def test_casting_and_torchao_leave_a_vae_working() -> None:
    vae = load("flux").components["vae"]
    found = allowed_schemes("vae", vae, "bfloat16")
    assert {each.partition("-")[0] for each in found} == {"none", "fp8", "torchao"}


def test_single_file_classes_are_those_that_diffusers_loads_so() -> None:
    pytest.importorskip("diffusers")
    from diffusers.loaders.single_file_model import SINGLE_FILE_LOADABLE_CLASSES

    denoisers = {
        part.class_path.rpartition(".")[2]
        for model in all_models()
        for name, part in model.components.items()
        if name.startswith(("transformer", "unet", "prior"))
    }
    assert denoisers & set(SINGLE_FILE_LOADABLE_CLASSES) == SINGLE_FILE
