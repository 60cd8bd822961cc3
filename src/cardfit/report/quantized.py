"""The diffusers lines that load components under a weight scheme.

In: component -> scheme, the classes of the components, the repository and dtypes. Out: lines, imports and arguments of
``from_pretrained``. Schemes that a library makes while it loads become one PipelineQuantizationConfig; GGUF and
SVDQuant are files of a denoiser, loaded beforehand, whose names stand to be filled in. Layerwise casting comes later.
"""

from __future__ import annotations

from collections.abc import Mapping

from cardfit.request import Quantization

_AO_CONFIGS = {
    "torchao-int8": "Int8WeightOnlyConfig",
    "torchao-int8dq": "Int8DynamicActivationInt8WeightConfig",
    "torchao-int4": "Int4WeightOnlyConfig",
    "torchao-fp8": "Float8WeightOnlyConfig",
    "torchao-fp8dq": "Float8DynamicActivationFloat8WeightConfig",
}
_BNB_ARGUMENTS = {
    "bnb-int8": ("load_in_8bit=True",),
    "bnb-nf4": (
        "load_in_4bit=True",
        'bnb_4bit_quant_type="nf4"',
        "bnb_4bit_compute_dtype=torch.bfloat16",
    ),
}
_QUANTO_WEIGHTS = {
    "quanto-int8": "int8",
    "quanto-fp8": "float8",
    "quanto-int4": "int4",
    "quanto-int2": "int2",
}


def of_transformers(classes: Mapping[str, str], name: str) -> bool:
    """Whether a component is a model of transformers, as the safety checker that diffusers defines is."""
    path = classes.get(name, "")
    return path.startswith("transformers.") or path.endswith("SafetyChecker")


def config(
    schemes: Mapping[str, Quantization], classes: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """The lines of a PipelineQuantizationConfig and what they import; nothing where no scheme needs one."""
    mapping: list[str] = []
    imports: set[str] = set()
    for name, scheme in schemes.items():
        prefix = "Transformers" if of_transformers(classes, name) else "Diffusers"
        found = _one(scheme, prefix)
        if found is None:
            continue
        kind, arguments, more = found
        mapping.append(f'        "{name}": {prefix}{kind}(')
        mapping += [*(f"            {each}," for each in arguments), "        ),"]
        imports |= {f"from {prefix.lower()} import {kind} as {prefix}{kind}", *more}
    if not mapping:
        return [], []
    imports.add("from diffusers.quantizers import PipelineQuantizationConfig")
    lines = ["quantization = PipelineQuantizationConfig(", "    quant_mapping={", *mapping]
    return [*lines, "    }", ")"], sorted(imports)


def _one(scheme: str, prefix: str) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """The config class of a scheme, its arguments and further imports."""
    if scheme in _BNB_ARGUMENTS:
        return "BitsAndBytesConfig", _BNB_ARGUMENTS[scheme], ()
    if scheme in _AO_CONFIGS:
        kind = _AO_CONFIGS[scheme]
        return "TorchAoConfig", (f"{kind}()",), (f"from torchao.quantization import {kind}",)
    if scheme in _QUANTO_WEIGHTS:
        argument = "weights" if prefix == "Transformers" else "weights_dtype"
        return "QuantoConfig", (f'{argument}="{_QUANTO_WEIGHTS[scheme]}"',), ()
    return None


def files(
    schemes: Mapping[str, Quantization],
    classes: Mapping[str, str],
    dtypes: Mapping[str, str],
    repo_id: str,
) -> tuple[list[str], list[str], list[str]]:
    """Lines that load a component from a file of its own, their imports, and the arguments that hand it over."""
    lines: list[str] = []
    imports: set[str] = set()
    arguments: list[str] = []
    for name, scheme in schemes.items():
        if name not in classes or not scheme.startswith(("gguf", "svdq")):
            continue
        kind = classes[name].rpartition(".")[2]
        dtype = f"torch.{dtypes.get(name, 'bfloat16')}"
        imports.add(f"from diffusers import {kind}")
        arguments.append(f"    {name}={name},")
        if scheme.startswith("svdq"):
            precision = scheme.partition("-")[2]
            lines += [
                f"{name} = {kind}.from_pretrained(",
                f'    "SVDQUANT_{precision.upper()}_CHECKPOINT",  # written for diffusers (Nunchaku Lite)',
                f"    dtype={dtype},",
                ")",
            ]
            continue
        imports.add("from diffusers import GGUFQuantizationConfig")
        lines += [
            f"{name} = {kind}.from_single_file(",
            f'    "{name}-{scheme.partition("-")[2].upper()}.gguf",',
            f'    config="{repo_id}",',
            f'    subfolder="{name}",',
            f"    quantization_config=GGUFQuantizationConfig(compute_dtype={dtype}),",
            f"    dtype={dtype},",
            ")",
        ]
    return lines, sorted(imports), arguments
