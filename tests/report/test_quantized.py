"""The lines that load quantized components, against the libraries' own signatures where they are installed."""

from __future__ import annotations

import ast
import inspect

import pytest

from cardfit.report.quantized import config, files
from cardfit.request import QUANTIZATIONS, Quantization

CLASSES = {
    "transformer": "diffusers.FluxTransformer2DModel",
    "text_encoder_2": "transformers.T5EncoderModel",
}
FROM_FILES = tuple(each for each in QUANTIZATIONS if each.startswith(("gguf", "svdq")))
MADE = tuple(each for each in QUANTIZATIONS if each not in ("none", "fp8-layerwise", *FROM_FILES))


@pytest.mark.parametrize("scheme", MADE)
def test_a_scheme_made_while_loading_is_a_config_for_either_library(scheme: Quantization) -> None:
    lines, imports = config(dict.fromkeys(CLASSES, scheme), CLASSES)
    source = "\n".join(lines)
    ast.parse(source)
    assert '"transformer": Diffusers' in source
    assert '"text_encoder_2": Transformers' in source
    assert {line.split()[1].partition(".")[0] for line in imports} >= {"diffusers", "transformers"}
    assert files({"transformer": scheme}, CLASSES, {}, "org/repo") == ([], [], [])


@pytest.mark.parametrize("scheme", FROM_FILES)
def test_a_scheme_that_comes_as_a_file_is_loaded_beforehand(scheme: Quantization) -> None:
    lines, imports, handed = files({"transformer": scheme}, CLASSES, {}, "org/repo")
    ast.parse("\n".join([*imports, *lines]))
    assert lines[0].startswith("transformer = FluxTransformer2DModel.from_")
    assert handed == ["    transformer=transformer,"]
    assert config({"transformer": scheme}, CLASSES) == ([], [])


def test_gguf_is_one_file_with_the_config_of_the_repository() -> None:
    lines, imports, _ = files(
        {"transformer": "gguf-q4_k"}, CLASSES, {"transformer": "float16"}, "org/repo"
    )
    assert '    "transformer-Q4_K.gguf",' in lines
    assert '    config="org/repo",' in lines
    assert "    dtype=torch.float16," in lines
    assert "from diffusers import GGUFQuantizationConfig" in imports


def test_the_arguments_are_those_of_the_installed_libraries() -> None:
    pytest.importorskip("diffusers")
    import diffusers
    import transformers

    assert "weights_dtype" in inspect.signature(diffusers.QuantoConfig).parameters
    assert "weights" in inspect.signature(transformers.QuantoConfig).parameters
    for library in (diffusers, transformers):
        assert "load_in_8bit" in inspect.signature(library.BitsAndBytesConfig).parameters
        assert "quant_type" in inspect.signature(library.TorchAoConfig).parameters
    assert "compute_dtype" in inspect.signature(diffusers.GGUFQuantizationConfig).parameters
