"""Model files at hand say what their names do not."""

from __future__ import annotations

import json
import struct

from cardfit.comfy.reader import read_workflow
from cardfit.library import load


def test_a_file_at_hand_says_what_its_name_does_not(make, tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    params = load("mochi-1").components["transformer"].params
    header = {"dtype": "F8_E4M3", "shape": [params], "data_offsets": [0, params]}
    text = json.dumps({"model.diffusion_model.w": header}).encode()
    with (folder / "mine.safetensors").open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + params)  # the weights are a hole in the file
    raw = make.text_to_image()
    raw["nodes"][0]["widgets_values"] = ["mine.safetensors"]
    assert read_workflow(raw).requests[0].model is None
    found = read_workflow(raw, models=tmp_path)
    (request,) = found.requests
    assert (request.model, request.kin) == ("mochi-1", True)
    assert (request.parts[0].precision, found.files[0].size_bytes) == ("fp8", params)
