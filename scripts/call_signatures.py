"""Write what a pipeline's call takes by default, from the source of the installed diffusers: the reader's data file.

In: the installed diffusers, whose files are parsed and not imported. Out: `src/cardfit/script/data/signatures.json`;
with ``--check`` nothing is written, and the exit code says whether the file is as it should be.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src" / "cardfit" / "script" / "data" / "signatures.json"
FIELDS = (
    "width", "height", "num_frames", "video_length", "num_inference_steps", "guidance_scale", "true_cfg_scale",
    "max_guidance_scale", "text_guidance_scale", "num_images_per_prompt", "num_videos_per_prompt", "strength",
    "denoise_strength", "max_sequence_length", "decode_chunk_size", "frame_rate",
)  # fmt: skip


def pipelines(root: Path) -> dict[str, dict[str, Any]]:
    """Every pipeline class below ``root``: the arguments of its call in their order, and the plain defaults."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(root.rglob("pipeline_*.py")):
        if "deprecated" in path.parts:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Pipeline"):
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and each.name == "__call__":
                        found[node.name] = _signature(each)
    return dict(sorted(found.items()))


def _signature(call: ast.FunctionDef) -> dict[str, Any]:
    names = [each.arg for each in call.args.args][1:]
    values = dict(zip(names[::-1], call.args.defaults[::-1], strict=False))
    plain: dict[str, Any] = {}
    for name in FIELDS:
        if name in values:
            try:
                plain[name] = ast.literal_eval(values[name])
            except ValueError:
                plain[name] = None
    return {"args": names[:8], "defaults": plain}


def text() -> str:
    """What the data file should hold."""
    spec = find_spec("diffusers")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent / "pipelines"
    head = {"source": f"diffusers {version('diffusers')}: signature of __call__ of every pipeline"}
    rows = pipelines(root)
    lines = [f'  "{name}": {json.dumps(row)}' for name, row in rows.items()]
    return (
        "{\n"
        + f' "source": {json.dumps(head["source"])},\n "pipelines": {{\n'
        + ",\n".join(lines)
        + "\n }\n}\n"
    )


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    wanted = text()
    if parser.parse_args().check:
        return int(TARGET.read_text(encoding="utf-8") != wanted)
    TARGET.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
