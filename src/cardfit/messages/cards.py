"""Sentences of the room `cards`, and of the tables that people write."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "unknown-card": N_("{asked}: no such card. {suggestion}List them: cardfit cards"),
    "ambiguous-card": N_("{asked} may be any of {names}. Name one of them"),
    "card-memory-unknown": N_(
        "{card}: nobody published how much memory its driver reports. "
        "Give it in a cards file: the columns id and vram_mib_reported"
    ),
    # why a card gets no verdict
    "card-unverified-vendor": N_(
        "{card} is made by {vendor}: the memory rules are checked on NVIDIA cards only"
    ),
    "card-unverified-unified": N_(
        "{card} shares its memory with the processor: nobody has checked the memory rules there"
    ),
    "card-unverified-memory": N_("how much memory the driver of {card} reports is not known"),
    "card-unverified-capability": N_(
        "the compute capability of {card} is not known, and the memory rules depend on it"
    ),
    "card-rates-missing": N_("no published rate of {card} for: {kinds}. It gets no time figure"),
    # this machine
    "run-extra-missing": N_(
        "Reading this machine's cards needs an optional part that is not installed. "
        "Install it: pip install 'cardfit[run]'"
    ),
    "no-gpu-here": N_(
        "No NVIDIA card was found on this machine. "
        "Plan over the catalog without --here, or name a card with --card"
    ),
    "card-unknown-here": N_(
        "{name} with {memory} is not in the catalog: its memory counts as the driver reports it, "
        "its rates are unknown"
    ),
    "card-modified-here": N_(
        "{name} reports {memory}, the catalog says {expected}: "
        "the memory counts as the driver reports it"
    ),
    "card-unreadable-here": N_("the driver cannot read card {index}; it is left out"),
    # tables
    "table-unreadable": N_("{file} cannot be read: {why}"),
    "table-too-large": N_("{file} is larger than {limit_mb} MB. A table of this kind never is"),
    "table-not-text": N_("{file} is not UTF-8 text. Save it as CSV in UTF-8"),
    "table-not-csv": N_("{file}, row {row}: not CSV ({why})"),
    "table-empty": N_("{file} is empty. The first line names the columns: {columns}"),
    "table-missing-column": N_(
        "{file}, row 1: the column {column} is missing. These must be there: {required}"
    ),
    "table-double-column": N_("{file}, row 1: the column {column} stands there twice"),
    "table-unknown-column": N_(
        "{file}, row 1: the column {column} is not known. {suggestion}Known columns: {columns}"
    ),
    "table-long-row": N_(
        "{file}, row {row}: more cells than the {columns} columns, or more than {rows} rows"
    ),
    "table-bad-cell": N_("{file}, row {row}, column {column}: found '{found}'; allowed: {allowed}"),
    "table-double-row": N_("{file}, row {row}, column id: {id} stands in the file twice"),
    "allowed-text": N_("a text that is not empty"),
    "allowed-above-zero": N_("a number above zero"),
    "allowed-count": N_("a whole number from {lowest} up"),
    "allowed-one-of": N_("one of {names}"),
    "allowed-date": N_("a date such as 2026-08-31, not after {latest}"),
    "allowed-card": N_("the id of a known card. {suggestion}List them: cardfit cards"),
    "allowed-capability": N_("a compute capability such as 8.9"),
    "allowed-id": N_("lower-case letters, digits and hyphens"),
}
