"""Disk for the published weight files, as a download leaves them in the hub's cache."""

from __future__ import annotations

from cardfit.library.models import Model

_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def disk_bytes(model: Model) -> int:
    """Bytes of the published files of every component that is loaded, in their published dtypes."""
    total = 0
    for part in model.components.values():
        if part.counted:
            total += (part.params + part.persistent_buffers) * _ITEM_BYTES[part.published_dtype]
    return total
