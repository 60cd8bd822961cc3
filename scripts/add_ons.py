"""Count the parameters in ``library/data/add-ons.json`` anew, from diffusers' and transformers' own classes.

    python scripts/add_ons.py

Run it where a network or a model was added. Everything else in the file is written by hand.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from cardfit.library.add_ons import DENOISERS
from cardfit.library.build import build
from cardfit.library.load import all_models, load
from cardfit.library.models import ComponentSpec, Model

FILE = Path(__file__).parents[1] / "src/cardfit/library/data/add-ons.json"
FEW = 2  # layers of the smaller of two networks that are compared


def count(class_path: str, config: dict[str, Any], config_class: str | None = None) -> int:
    """Parameters of a module."""
    spec = ComponentSpec(
        class_path=class_path,
        config_class=config_class,
        config=config,
        published_dtype="float16",
        published_dtype_basis="",
        recommended_dtype="float16",
        params=1,
        expected_source="",
        basis="none",
        verified=False,
    )
    return sum(each.numel() for each in build(spec, "float16").parameters())


def sized(class_path: str, config: dict[str, Any], layers: list[str]) -> dict[str, Any]:
    """Parameters that are always there, and those of each layer."""
    if not layers:
        return {"fixed": count(class_path, config)}
    few = config | dict.fromkeys(layers, FEW)
    least = count(class_path, few)
    each = {key: count(class_path, few | {key: FEW + 1}) - least for key in layers}
    return {"fixed": least - FEW * sum(each.values()), "each": each}


def of_network(model: Model, net: dict[str, Any], field: str) -> None:
    """Fill in the parameters of a network beside ``model``."""
    base = model if "like" not in net else load(net["like"])
    name = next(each for each in base.components if each.startswith(DENOISERS))
    like = base.components[name].config if field == "controlnets" else {}
    config, layers = like | net.get("config", {}), net.get("layers", [])
    net["params"][model.id] = sized(net["class_path"], config, layers)
    for own in net.get("named", {}).values():
        if "class_path" in own or "num_mode" in own["config"]:  # not of the general shape
            path = own.get("class_path", net["class_path"])
            own.setdefault("params", {})[model.id] = sized(path, config | own["config"], layers)


def main() -> None:
    """Read, count, write."""
    logging.disable(logging.WARNING)
    facts = json.loads(FILE.read_text(encoding="utf-8"))
    for encoder in facts["image_encoders"].values():
        encoder["params"] = count(encoder["class_path"], encoder["config"], encoder["config_class"])
    for field in ("controlnets", "t2i_adapters"):
        for pipeline, net in facts[field].items():
            net["params"] = {}
            for model in all_models():
                if model.pipeline == pipeline:
                    of_network(model, net, field)
    FILE.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
