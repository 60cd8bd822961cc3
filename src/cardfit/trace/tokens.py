"""Tokenizers and processors without a vocabulary: they pad, truncate and template like the real ones.

The number of tokens is what shapes the work; which tokens they are never does. One word of up to 12
letters, one sign or one line end is one token.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers import BatchEncoding, BatchFeature

# close to a real vocabulary: the known prefix lengths of chat templates (34, 95, 128 tokens) come out within 4
_WORDS = re.compile(r"<\|?[a-z_]+\|?>|\w{1,12}|[^\w\s]|\n", re.IGNORECASE)
_FIRST_WORD_ID = 10


class DryTokenizer:
    """Counts, pads and truncates. ``model_max_length`` and the special ids are the encoder's own."""

    flattens = True  # one conversation gives one row; processors give a list of one
    positions = False  # whether the places of the tokens are given too

    def __init__(
        self, model_max_length: int, eos_token_id: int = 1, image_token_id: int | None = None
    ) -> None:
        self.model_max_length = model_max_length
        self.pad_token_id = 0
        self.eos_token_id = eos_token_id
        self.bos_token_id = 2
        self.image_token_id = image_token_id
        self.pad_token = "<pad>"
        self.eos_token = "</s>"
        self.bos_token = "<s>"
        self.image_token = "<|image_pad|>"
        self.padding_side = "right"
        self.tokenizer = self

    def _ids(self, text: str) -> list[int]:
        ids = []
        for word in _WORDS.findall(text):
            if word == self.image_token and self.image_token_id is not None:
                ids.append(self.image_token_id)
            else:
                ids.append(_FIRST_WORD_ID)
        return ids

    def tokenize(self, text: str, **_: Any) -> list[str]:
        """The words of ``text``."""
        return _WORDS.findall(text)

    @property
    def added_tokens_encoder(self) -> dict[str, int]:
        """No learned words (textual inversion)."""
        return {}

    def encode(self, text: str, **_: Any) -> list[int]:
        """Ids of ``text`` with the end token."""
        return [*self._ids(text), self.eos_token_id]

    def __call__(
        self,
        text: str | list[str] | None = None,
        *,
        padding: bool | str = False,
        max_length: int | None = None,
        truncation: bool = False,
        padding_side: str | None = None,
        add_special_tokens: bool = True,
        return_tensors: str | None = None,
        **_: Any,
    ) -> BatchEncoding:
        """``input_ids`` and ``attention_mask``, ``[batch, length]``."""
        texts = [text] if isinstance(text, str) else list(text or [])
        limit = max_length or self.model_max_length
        rows = [self.encode(t) if add_special_tokens else self._ids(t) for t in texts]
        if truncation:
            rows = [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in rows]
        if padding == "max_length":
            length = limit
        elif padding or len({len(row) for row in rows}) > 1:
            length = max(len(row) for row in rows)
        else:
            length = 0
        left = (padding_side or self.padding_side) == "left"
        ids, masks = [], []
        for row in rows:
            fill = max(0, length - len(row))
            pad, hidden = [self.pad_token_id] * fill, [0] * fill
            ids.append(pad + row if left else row + pad)
            masks.append(hidden + [1] * len(row) if left else [1] * len(row) + hidden)
        data: dict[str, Any] = {"input_ids": ids, "attention_mask": masks}
        if self.positions:
            data["position_ids"] = [list(range(len(row))) for row in ids]
        if return_tensors == "pt":
            data = {key: torch.tensor(value, dtype=torch.int64) for key, value in data.items()}
        elif isinstance(text, str):
            data = {key: value[0] for key, value in data.items()}
        return BatchEncoding(data)

    def pad(self, encoded: Any, *, max_length: int | None = None, **kwargs: Any) -> BatchEncoding:
        """``input_ids`` that are there already, filled up to ``max_length`` as a call does it."""
        rows = encoded["input_ids"]
        limit = max_length or max(len(row) for row in rows)
        fill = [[self.pad_token_id] * (limit - len(row)) for row in rows]
        ids = [[*row, *rest] for row, rest in zip(rows, fill, strict=True)]
        masks = [[1] * len(row) + [0] * len(rest) for row, rest in zip(rows, fill, strict=True)]
        data: dict[str, Any] = {"input_ids": ids, "attention_mask": masks}
        if kwargs.get("return_tensors") == "pt":
            data = {key: torch.tensor(value, dtype=torch.int64) for key, value in data.items()}
        return BatchEncoding(data)

    def apply_chat_template(
        self,
        conversation: Any,
        *,
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The conversation as one string with role marks, or its tokens."""
        batch = (
            conversation if conversation and isinstance(conversation[0], list) else [conversation]
        )
        texts = [self._chat(messages, add_generation_prompt) for messages in batch]
        if not tokenize:
            return texts if batch is conversation else texts[0]
        whole = kwargs.pop("return_dict", True)
        out = self(texts, **kwargs)
        if batch is not conversation and "return_tensors" not in kwargs and self.flattens:
            out = BatchEncoding({key: value[0] for key, value in out.items()})
        return out if whole else out["input_ids"]

    def _chat(self, messages: Any, add_generation_prompt: bool) -> str:
        parts = []
        for message in messages:
            content = message["content"]
            if isinstance(content, list):
                content = " ".join(
                    item.get("text", self.image_token) if isinstance(item, dict) else str(item)
                    for item in content
                )
            parts.append(f"<|im_start|> {message['role']} {content} <|im_end|>")
        if add_generation_prompt:
            parts.append("<|im_start|> assistant")
        return " ".join(parts)

    def convert_tokens_to_ids(self, token: str) -> int:
        """The id of a word."""
        return self._ids(token)[0] if self._ids(token) else self.pad_token_id

    def decode(self, *_: Any, **__: Any) -> str:
        """Nothing: ids here have no words."""
        return ""

    def batch_decode(self, rows: Any, **_: Any) -> list[str]:
        """Nothing, once per row."""
        return ["" for _ in rows]


def _sides(picture: Any) -> tuple[int, int]:
    """Height and width in pixels of a PIL image or a tensor ``[..., height, width]``."""
    if isinstance(picture, torch.Tensor):
        return int(picture.shape[-2]), int(picture.shape[-1])
    width, height = picture.size
    return int(height), int(width)


class DryImageProcessor:
    """Pictures to ``pixel_values`` ``[batch, 3, side, side]`` of the vision encoder's own side."""

    def __init__(self, side: int) -> None:
        self.size = {"height": side, "width": side, "shortest_edge": side}
        self.crop_size = {"height": side, "width": side}
        self.side = side
        self.image_mean = [0.5, 0.5, 0.5]
        self.image_std = [0.5, 0.5, 0.5]

    def __call__(self, images: Any = None, **_: Any) -> BatchFeature:
        """Zeros of the right shape."""
        count = len(images) if isinstance(images, (list, tuple)) else 1
        if isinstance(images, torch.Tensor):
            count = images.shape[0] if images.dim() == 4 else 1
        return BatchFeature({"pixel_values": torch.zeros(count, 3, self.side, self.side)})

    preprocess = __call__


class DryVisionProcessor(DryTokenizer):
    """Text with pictures for a vision-language encoder: patches, merged 2 x 2 into one token each."""

    flattens = False
    patch, merge = 14, 2
    types = False  # whether each token says if it is of a picture

    @property
    def image_processor(self) -> DryVisionProcessor:
        """The pictures' half of it."""
        return self

    @property
    def merge_size(self) -> int:
        """Patches on a side that become one token."""
        return self.merge

    def __call__(  # type: ignore[override]
        self, text: Any = None, images: Any = None, **kwargs: Any
    ) -> BatchFeature | BatchEncoding:
        """``input_ids``, ``attention_mask`` and, with pictures, ``pixel_values`` and ``image_grid_thw``."""
        if images is None:
            return super().__call__(text, **kwargs)
        if text is None:
            text = []
        pictures = images if isinstance(images, (list, tuple)) else [images]
        unit = self.patch * self.merge
        grids = []
        for picture in pictures:
            height, width = _sides(picture)
            rows, columns = max(1, round(height / unit)), max(1, round(width / unit))
            grids.append([1, rows * self.merge, columns * self.merge])
        texts = [text] if isinstance(text, str) else list(text)
        counts = [grid[1] * grid[2] // self.merge**2 for grid in grids]
        expanded = []
        for line in texts:
            for count in counts:
                line = line.replace(self.image_token, " ".join(["<|dry_image|>"] * count), 1)
            expanded.append(line.replace("<|dry_image|>", self.image_token))
        encoded = super().__call__(expanded, **kwargs) if expanded else {}
        depth = 3 * 2 * self.patch**2
        if self.types and expanded:
            ids = torch.as_tensor(encoded["input_ids"])
            encoded["mm_token_type_ids"] = torch.eq(ids, self.image_token_id or 0).to(torch.int64)
        patches = sum(grid[1] * grid[2] for grid in grids)
        return BatchFeature(
            {
                **encoded,
                "pixel_values": torch.zeros(patches, depth),
                "image_grid_thw": torch.tensor(grids, dtype=torch.int64),
            }
        )
