"""Sentences of the room `request`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # the file
    "planfile-not-read": N_("{path}: cannot be read ({why}). Check the path."),
    "planfile-too-large": N_(
        "{path}: larger than {limit} bytes, more than such a file holds. Check the path."
    ),
    "planfile-not-text": N_("{path}: not a text file in UTF-8 (byte {byte}). Check the path."),
    "planfile-empty": N_("{path}: empty. It needs at least: request, and below it model."),
    "planfile-not-yaml": N_("{path}: not YAML ({why})."),
    "planfile-not-yaml-line": N_("{path}, line {line}: not YAML ({why})."),
    "planfile-not-a-mapping": N_(
        "{path}: found {found}, needs the keys request and, if you like, settings."
    ),
    "planfile-object-tag": N_(
        "{path}, line {line}: {tag} is refused. Only plain texts, numbers, lists and mappings are read."
    ),
    "planfile-bad-key": N_("{path}, line {line}: a key must be a plain text."),
    "planfile-key-twice": N_("{path}, line {line}: {key} stands twice. Keep one."),
    "planfile-too-deep": N_("{path}: nested deeper than {limit} levels, so it is not a plan file."),
    "planfile-unfolds": N_(
        "{path}: its aliases unfold to more than {limit} values, so it is not a plan file."
    ),
    "planfile-exists": N_("{path}: exists already. Take another name, or add --force."),
    "planfile-not-written": N_("{path}: cannot be written ({why})."),
    # where a field stands
    "in-file": N_("{path}: "),
    "in-file-line": N_("{path}, line {line}: "),
    # fields
    "unknown-field": N_("{where}{field}: no such field. {suggestion}Known: {allowed}"),
    "missing-field": N_("{where}{field} is missing. Add it."),
    "field-at-least": N_("{where}{field} is {found}; it must be at least {allowed}"),
    "field-more-than": N_("{where}{field} is {found}; it must be more than {allowed}"),
    "field-at-most": N_("{where}{field} is {found}; it must be at most {allowed}"),
    "field-less-than": N_("{where}{field} is {found}; it must be less than {allowed}"),
    "field-one-of": N_("{where}{field} is {found}; it must be one of: {allowed}"),
    "field-whole-number": N_("{where}{field} is {found}; it must be a whole number"),
    "field-number": N_("{where}{field} is {found}; it must be a number"),
    "field-yes-no": N_("{where}{field} is {found}; it must be true or false"),
    "field-not-yes-no": N_("{where}{field} is {found}; yes and no mean nothing here"),
    "field-text": N_("{where}{field} is {found}; it must be a short text"),
    "field-mapping": N_("{where}{field} is {found}; it must be a mapping of names to values"),
    "field-wrong": N_("{where}{field} is {found}; {why}"),
}
