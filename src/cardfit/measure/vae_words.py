"""Settings of a VAE in a few words: ``full``, ``tiled``, ``tile=256,overlap=64``, ``sliced,float32``.

In: words with commas, a model, a request. Out: `Settings` that say everything about the decode and nothing else; the
settings that are tried when nobody names any, and the model's valid reference among them.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from cardfit.errors import BadRequest
from cardfit.library.models import Model
from cardfit.request import DTYPES, ExactRequest, Settings

FULL, TILED, SLICED = "full", "tiled", "sliced"
NUMBERS = {"tile": "vae_tile", "overlap": "vae_overlap", "chunk": "decode_chunk_size"}
WORDS = (FULL, TILED, SLICED, *(f"{name}=N" for name in NUMBERS), *DTYPES)
MOST = 32  # settings of one call


def vae_settings(text: str, model: Model, request: ExactRequest) -> Settings:
    """The decode that ``text`` says; what it does not say is off. Raises BadRequest.

    >>> from cardfit.library.load import load
    >>> from cardfit.library.rules import resolve
    >>> from cardfit.request import Request
    >>> sdxl = load("sdxl-base")
    >>> exact, _ = resolve(sdxl, Request(model="sdxl-base"))
    >>> found = vae_settings("tile=256,float32", sdxl, exact)
    >>> found.vae_tiling, found.vae_tile, found.dtype
    (True, 256, {'vae': 'float32'})
    """
    fields: dict[str, Any] = {
        "vae_tiling": False,
        "vae_tile": None,
        "vae_overlap": None,
        "vae_slicing": False,
    }
    if model.vae.decode_chunk_size:  # in one piece: every frame in one call
        fields["decode_chunk_size"] = request.num_frames
    for word in (part.strip() for part in text.split(",")):
        name, equals, number = word.partition("=")
        if word == FULL:
            continue
        if word == TILED:
            fields["vae_tiling"] = True
        elif word == SLICED:
            fields["vae_slicing"] = True
        elif word in DTYPES:
            fields["dtype"] = {model.vae.component: word}
        elif equals and name in NUMBERS and number.isascii() and number.isdigit():
            fields[NUMBERS[name]] = int(number[:9])
            fields["vae_tiling"] = fields["vae_tiling"] or name != "chunk"
        else:
            raise BadRequest("decode-bad-words", asked=text, word=word, allowed=", ".join(WORDS))
    if fields.get("vae_tile") and (fields["vae_overlap"] or 0) >= fields["vae_tile"]:
        raise BadRequest("decode-bad-overlap", asked=text)
    try:
        return Settings(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]).removeprefix("vae_")
        raise BadRequest("decode-bad-number", asked=text, field=field, why=first["msg"]) from None


def reference_words(model: Model) -> str:
    """The decode that others are held against: in one piece, or in tiles where the VAE was trained in them."""
    return TILED if model.vae.tiling_required else FULL


def usual_words(model: Model, request: ExactRequest) -> tuple[str, ...]:
    """What is tried when nothing is named: the reference, slices, the VAE's own tiles, half of them, chunks, fp32."""
    vae, found = model.vae, [reference_words(model)]
    if vae.slicing and request.batch > 1:
        found.append(SLICED)
    if vae.tiling and vae.tile_side is not None and not vae.tiling_required:
        found += [TILED, f"tile={vae.tile_side // 2}"]
    if vae.decode_chunk_size and request.num_frames > 1:
        found += [f"chunk={size}" for size in (8, 2) if size < request.num_frames]
    if model.components[vae.component].recommended_dtype != "float32":
        found.append("float32")
    return tuple(found)
