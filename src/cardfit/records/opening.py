"""Which store a text names, opened.

In: a database's URL, a folder, or nothing. Out: an open store. Nothing means the one that ``CARDFIT_STORE`` names, else
SQLite in the user's data folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cardfit.errors import BadFile
from cardfit.records import files
from cardfit.records.folder import FolderStore, folder_named
from cardfit.records.store import Store

AnyStore = Store | FolderStore
_NAME = "records.sqlite"


def default_url() -> str:
    """The store that is meant where none is named."""
    own = f"sqlite:///{(files.data_folder() / _NAME).as_posix()}"
    return os.environ.get("CARDFIT_STORE") or own


def open_store(text: str | None = None) -> AnyStore:
    """The store that ``text`` names. Raises BadRequest for a text that names none, BadFile for one not to be used."""
    named = text or default_url()
    folder = folder_named(named)
    if folder is None:
        return Store(named)
    if folder.is_file():
        raise BadFile("store-is-a-file", asked=str(folder))
    return FolderStore(folder)


@contextmanager
def opened(text: str | None = None) -> Iterator[AnyStore]:
    """The store that ``text`` names, closed afterwards."""
    store = open_store(text)
    try:
        yield store
    finally:
        store.close()
