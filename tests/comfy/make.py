"""Small workflows written out, as the editor saves them."""

from __future__ import annotations

from typing import Any


def node(
    id: int | str,
    type: str,
    widgets: Any = (),
    inputs: Any = (),
    outputs: Any = (),
    **more: Any,
) -> dict[str, Any]:
    """A node. ``inputs`` are (name, type, link) or (name, type, link, widget), ``outputs`` are types."""
    listed = []
    for name, kind, link, *widget in inputs:
        entry = {"name": name, "type": kind, "link": link}
        if widget:
            entry["widget"] = {"name": widget[0]}
        listed.append(entry)
    values = list(widgets) if isinstance(widgets, (list, tuple)) else widgets
    return {
        "id": id,
        "type": type,
        "mode": 0,
        "inputs": listed,
        "outputs": [{"name": kind, "type": kind} for kind in outputs],
        "properties": {},
        "widgets_values": values,
        **more,
    }


def graph(*nodes: dict[str, Any], links: Any = (), subgraphs: Any = ()) -> dict[str, Any]:
    """A workflow of version 0.4."""
    found: dict[str, Any] = {
        "version": 0.4,
        "nodes": list(nodes),
        "links": [list(each) for each in links],
    }
    if subgraphs:
        found["definitions"] = {"subgraphs": list(subgraphs)}
    return found


def text_to_image(**changes: Any) -> dict[str, Any]:
    """SDXL, 1024 x 768, 25 steps; ``changes`` replaces nodes by their key below."""
    parts = {
        "loader": node(
            1,
            "CheckpointLoaderSimple",
            ["sd_xl_base_1.0.safetensors"],
            (),
            ("MODEL", "CLIP", "VAE"),
        ),
        "latent": node(2, "EmptyLatentImage", [1024, 768, 1], (), ("LATENT",)),
        "sampler": node(
            3,
            "KSampler",
            [7, "fixed", 25, 6.5, "euler", "normal", 1],
            [("model", "MODEL", 1), ("latent_image", "LATENT", 2)],
            ("LATENT",),
        ),
        "decode": node(
            4, "VAEDecode", [], [("samples", "LATENT", 3), ("vae", "VAE", 4)], ("IMAGE",)
        ),
        "save": node(5, "SaveImage", ["x"], [("images", "IMAGE", 5)]),
    }
    extra = changes.pop("links", ())
    more = changes.pop("more", ())
    parts |= changes
    links = [
        (1, 1, 0, 3, 0, "MODEL"),
        (2, 2, 0, 3, 1, "LATENT"),
        (3, 3, 0, 4, 0, "LATENT"),
        (4, 1, 2, 4, 1, "VAE"),
        (5, 4, 0, 5, 0, "IMAGE"),
        *extra,
    ]
    return graph(*parts.values(), *more, links=links)


def prompt() -> dict[str, Any]:
    """The same as the server is sent it."""
    return {
        "1": {
            "class_type": "CheckpointLoaderSimple",
            "inputs": {"ckpt_name": "sd_xl_base_1.0.safetensors"},
        },
        "2": {
            "class_type": "EmptyLatentImage",
            "inputs": {"width": 1024, "height": 768, "batch_size": 1},
        },
        "3": {
            "class_type": "KSampler",
            "inputs": {
                "seed": 7,
                "steps": 25,
                "cfg": 6.5,
                "sampler_name": "euler",
                "scheduler": "normal",
                "denoise": 1,
                "model": ["1", 0],
                "latent_image": ["2", 0],
            },
            "_meta": {"title": "Sampler"},
        },
        "4": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["1", 2]}},
        "5": {"class_type": "SaveImage", "inputs": {"images": ["4", 0], "filename_prefix": "x"}},
    }
