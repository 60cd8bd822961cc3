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
    "store-not-a-url": N_(
        "--store {asked}...: neither a folder nor a URL that can be read. Give a folder such as ./records or "
        "/mnt/share/records, or a URL such as sqlite:///records.sqlite or postgresql+psycopg://user@host/name; in a "
        "password write @ as %40, / as %2F, : as %3A"
    ),
    "store-bad-url": N_(
        "--store {asked}: not a database that can be opened ({why}). Give a URL such as "
        "sqlite:///records.sqlite or postgresql+psycopg://user@host/name, or a folder"
    ),
    "store-is-a-file": N_(
        "--store {asked} is a file. A database in a file is named sqlite:///{asked}; a folder of records is a folder"
    ),
    "store-needs-driver": N_(
        "a database of that kind needs {package}, which is not installed. "
        "For PostgreSQL install it: pip install 'cardfit[postgres]'"
    ),
    "store-unusable": N_(
        "the store {store} cannot be used: {why}. Records are kept as files all the same; "
        "name another store with --store, and add the files with cardfit records import"
    ),
    "store-newer": N_(
        "the store {store} has layout {found}; this cardfit knows up to {known}. Nothing was changed. "
        "Update cardfit to use it"
    ),
    "store-older": N_(
        "the store {store} has layout {found} (0: none yet), this cardfit needs {known}, and this role may not change "
        "it. Its owner brings it up by opening it: cardfit records list --store URL"
    ),
    "store-grant-needs-server": N_(
        "the store {store} has no roles, so {role} cannot be given any right there. "
        "Name a PostgreSQL store with --store; who may read a file is the system's business"
    ),
    "record-of-another-run": N_(
        "the store holds another run under this id, or a state of it that this cardfit cannot read; it stays as it is"
    ),
    "run-label-came": N_("Came"),
    "record-came": N_("{date} out of {store}"),
    "record-came-file": N_("{date} out of a file"),
    "doubt-time": N_("it says that it ran on {found}, which no run of cardfit can have"),
    "doubt-seconds": N_("{what} says {found} seconds, which nothing takes"),
    "doubt-figure": N_("the figure {what} is {found}, which no machine shows"),
    "doubt-negative": N_("a peak is below zero bytes"),
    "doubt-allocated": N_(
        "{allocated} are allocated and {reserved} reserved: torch allocates only what it has reserved"
    ),
    "doubt-card": N_("it says that {card} has {told}; the catalog says {known}"),
    "doubt-peak": N_("its peak is {peak}; {card} has {known}"),
    "doubt-weights": N_(
        "its peak is {peak} with nothing offloaded, and the weights alone were predicted to take {weights}"
    ),
    "doubt-quick": N_("it took {seconds} where {predicted} were predicted: no card is that quick"),
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
    "records-push-what": N_("name the store to send them to: a URL or a folder"),
    "records-pull-what": N_("name the store to fetch them from: a URL or a folder"),
    "records-merge-what": N_("name the store to share them with, both ways: a URL or a folder"),
    "records-grant-read-what": N_(
        "name the role that is to read the store, as in cardfit records grant-read cardfit_web --store URL"
    ),
    "records-copied": N_(
        "{source} to {target}: {new} new, {updated} brought up to date, {same} there already, {refused} refused"
    ),
    "records-refused": N_("{id}: {why}"),
    "records-refused-more": N_("and {count} more; --json has them all"),
    "records-granted": N_("{role} may read {store}, and nothing else of it"),
    "records-cut": N_("The latest {count} are shown. More: --limit N, or a filter"),
}
