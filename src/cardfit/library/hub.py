"""What the Hugging Face hub says of a repo: its configs, kept in the hub's own cache, and the headers of its weights.

In: a repo id. Out: the folder of a snapshot, the repo's facts, and headers read by range requests: of a file of
gigabytes some kilobytes come over the line. No pickle and no code is fetched. The variables of huggingface_hub hold
(HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE).
"""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from cardfit.errors import BadFile, BadRequest, MissingExtra
from cardfit.library.headers import Header, header_of
from cardfit.units import KIB

REPO = re.compile(r"^[A-Za-z0-9][\w.-]*/[\w.-]+$")
CONFIGS = ("model_index.json", "*/config.json", "*/*_config.json")
MAX_READ_BYTES = 2_000_000  # of one component, over all of its files
# a second set of weights beside the plain one, which from_pretrained reads only when asked
_VARIANTS = ("*.fp16.*", "*.bf16.*", "*.non_ema.*", "*.fp16-*", "*.bf16-*")
_BLOCK_BYTES = 32 * KIB  # holds the header of most shards
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Repo:
    """A repo at one commit: its files, and what its page states."""

    id: str
    commit: str
    files: tuple[str, ...]
    license: str | None
    created: str | None


def snapshot(repo: str, patterns: Sequence[str], suggestion: str = "") -> Path:
    """The folder of ``repo`` with the files that match, fetched where they are missing.

    Raises BadRequest where there is no such repo, BadFile where it cannot be fetched, MissingExtra.
    """
    _hub("utils").disable_progress_bars()
    found = _asked(
        repo,
        lambda: _hub().snapshot_download(
            repo,
            allow_patterns=list(patterns),
            ignore_patterns=list(_VARIANTS),
            endpoint=_endpoint(),
        ),
        suggestion,
    )
    return Path(found)


def repo_of(repo: str) -> Repo:
    """The files of ``repo`` and what its page states. Raises as `snapshot` does."""
    info = _asked(repo, lambda: _hub().HfApi(endpoint=_endpoint()).model_info(repo))
    card = getattr(info, "card_data", None)
    stated = getattr(card, "license_name", None) or getattr(card, "license", None)
    return Repo(
        id=repo,
        commit=str(info.sha),
        files=tuple(str(each.rfilename) for each in info.siblings or ()),
        license=stated if isinstance(stated, str) else None,
        created=f"{info.created_at:%Y-%m}" if info.created_at else None,
    )


def headers(repo: Repo, files: Sequence[str]) -> list[Header]:
    """The headers of ``files``, all of one component, by range requests.

    Raises as `snapshot` does, and BadFile for headers that take more than `MAX_READ_BYTES` together.
    """
    found, left = [], MAX_READ_BYTES
    for name in files:
        stream = _Remote(repo, name, left)
        found.append(_asked(repo.id, stream.header))
        left = stream.left
    return found


class _Remote(io.RawIOBase):
    """The beginning of a file on the hub, fetched as it is read; ``left`` bytes may come over the line."""

    def __init__(self, repo: Repo, name: str, left: int) -> None:
        self.url = _hub().hf_hub_url(repo.id, name, revision=repo.commit, endpoint=_endpoint())
        self.label, self.left = f"{repo.id}/{name}", left
        self._held, self._at, self.size_bytes = b"", 0, 0

    def header(self) -> Header:
        """What the file's header says."""
        self._more(_BLOCK_BYTES)
        return header_of(cast(BinaryIO, self), self.size_bytes, self.label)

    def read(self, size: int = -1) -> bytes:
        end = min(self._at + size, self.size_bytes)
        if end > len(self._held):
            self._more(end - len(self._held))
        found = self._held[self._at : end]
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset
        return offset

    def _more(self, count: int) -> None:
        if count > self.left:
            raise BadFile("hub-header-too-large", file=self.label, limit=MAX_READ_BYTES)
        start, utils = len(self._held), _hub("utils")
        asked = {**utils.build_hf_headers(), "range": f"bytes={start}-{start + count - 1}"}
        with utils.http_stream_backoff("GET", self.url, headers=asked, max_retries=1) as answer:
            utils.hf_raise_for_status(answer)
            whole = answer.headers.get("content-range", "").rpartition("/")[2]
            if answer.status_code != 206 or not whole.isdecimal():
                raise BadFile("hub-no-ranges", file=self.label)
            for block in answer.iter_bytes():
                self._held += block[: start + count - len(self._held)]
                self.left -= len(block)
                if len(self._held) >= start + count or self.left < 0:
                    break
        self.size_bytes = int(whole)


def _hub(module: str = "") -> Any:
    try:
        return importlib.import_module(f"huggingface_hub.{module}" if module else "huggingface_hub")
    except ModuleNotFoundError as missing:
        package = missing.name or "huggingface_hub"
        raise MissingExtra("hub-needs-package", package=package) from missing


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _asked(repo: str, ask: Callable[[], _Found], suggestion: str = "") -> _Found:
    """``ask()``, with what the hub's client raises as errors of cardfit."""
    errors = _hub("errors")
    try:
        return ask()
    except errors.GatedRepoError as error:
        raise BadRequest("hub-gated", repo=repo) from error
    except errors.RepositoryNotFoundError as error:
        raise BadRequest("hub-no-repo", repo=repo, suggestion=suggestion) from error
    except (OSError, errors.HFValidationError, RuntimeError, errors.HTTPError) as error:
        if _hub("constants").HF_HUB_OFFLINE:
            raise BadFile("hub-offline", repo=repo, suggestion=suggestion) from error
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise BadFile("hub-not-fetched", repo=repo, why=why[0], suggestion=suggestion) from error
