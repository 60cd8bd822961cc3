"""What was measured: the schema of a record, its file, and the store that finds it again.

In: records. Out: JSON files and rows of a database. Nothing here measures.
"""

from __future__ import annotations

from cardfit.records.files import data_folder, new_id, read, records_folder, write
from cardfit.records.models import Outcome, Reason, Record, Repetition

__all__ = [
    "Outcome",
    "Reason",
    "Record",
    "Repetition",
    "data_folder",
    "new_id",
    "read",
    "records_folder",
    "write",
]
