"""Sentences of the room `records`: files and stores that cannot be used as asked."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "record-not-written": N_(
        "{path} could not be written: {why}. What was recorded before is unharmed. "
        "Free some space, or name another folder with CARDFIT_DATA"
    ),
    "record-not-read": N_("{path} cannot be read: {why}. List what there is: cardfit records list"),
    "record-too-large": N_("{path} is larger than {limit}. A record never is"),
    "record-not-json": N_(
        "{path} is not JSON ({why}). A record is a file record.json from cardfit run"
    ),
    "record-not-a-record": N_(
        "{path} is not a record of cardfit: its schema is not cardfit.record with a version"
    ),
    "record-newer": N_(
        "{path} is a record of version {found}; this cardfit knows up to {known}. "
        "It is left as it is. Update cardfit to read it"
    ),
    "record-bad-field": N_("{path}: the field {field} is not as a record has it ({why})"),
    "record-not-removed": N_("{path} could not be removed: {why}"),
    "record-unknown": N_("{asked}: no record begins so{found}. List them: cardfit records list"),
    "record-ambiguous": N_("{asked} may be any of {found}. Give more of the id"),
    "records-need-store": N_(
        "Keeping records in a store needs {package}, which is not installed. "
        "Install it: pip install 'cardfit[run]'. The JSON files beside it are readable without"
    ),
    "store-bad-url": N_(
        "--store {asked}: not a database that can be opened ({why}). Give a URL such as "
        "sqlite:///records.sqlite or postgresql+psycopg://user@host/name"
    ),
    "store-unusable": N_(
        "the store {store} cannot be used: {why}. Records are kept as files all the same; "
        "name another store with --store, and add the files with cardfit records import"
    ),
    "store-newer": N_(
        "the store {store} has layout {found}; this cardfit knows up to {known}. Nothing was changed. "
        "Update cardfit to use it"
    ),
    "records-import-nothing": N_(
        "{path} holds no record. Name a record.json, a folder of them, or an export"
    ),
    "records-prune-what": N_("say what to remove: --older-than 30d, --outcome error, or both"),
    "records-bad-age": N_("--older-than {asked}: give a span such as 30d, 2w or 6mo"),
    "records-show-what": N_("name the record: an id from cardfit records list, or a path"),
    "records-export-what": N_("name the file to write, as in cardfit records export mine.json"),
    "records-import-what": N_(
        "name what to read: a record.json, a folder of records, or an export"
    ),
}
