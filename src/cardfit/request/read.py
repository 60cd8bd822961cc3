"""Read and write the YAML file of a request, and check fields from anywhere.

In: a path, or a dict of fields as flags or a web form give them. Out: a `PlanFile` or `Request`. YAML goes through the
safe loader only, with a limit on size, nesting and aliases; whatever is wrong is named by file, line and field in a
`BadFile` or `BadRequest`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from cardfit.errors import BadFile, BadRequest, Note
from cardfit.request.models import PlanFile, Request, Settings

if TYPE_CHECKING:
    import yaml
    from pydantic_core import ErrorDetails

MAX_FILE_BYTES = 1_048_576
"""A plan file holds some thirty short lines; 1 MiB is four orders of magnitude above that."""
MAX_NODES = 10_000
MAX_DEPTH = 16

_AnyModel = TypeVar("_AnyModel", bound=BaseModel)
Lines = dict[tuple[str | int, ...], int]  # where a field stands in its file


def schema() -> dict[str, Any]:
    """JSON Schema of the plan file: the request and the settings."""
    return PlanFile.model_json_schema()


def read_plan_file(path: str | Path) -> PlanFile:
    """The request and settings in the YAML file at ``path``.

    Raises BadFile when the file cannot be read as YAML of plain values, BadRequest when a field is unknown or wrong.
    """
    return _plan_file(Path(path), read_text(Path(path)))


def plan_file_of(content: bytes, name: str) -> PlanFile:
    """The request and settings in the bytes of a YAML file called ``name``. Raises as `read_plan_file`."""
    return _plan_file(Path(name), _decoded(content, Path(name), MAX_FILE_BYTES))


def _plan_file(path: Path, text: str) -> PlanFile:
    fields, lines = _fields_of(path, text)
    if fields is None:
        raise BadFile("planfile-empty", path=str(path))
    if not isinstance(fields, dict):
        raise BadFile("planfile-not-a-mapping", path=str(path), found=kind_of(fields))
    if fields.get("settings", ...) is None:  # the key with nothing below it
        del fields["settings"]
    return validate_fields(PlanFile, fields, path, lines)


def read_fields(path: Path, *, dates: bool = False) -> tuple[Any, Lines]:
    """The plain value in the YAML file at ``path``, None for an empty one, and the line of every field in it.

    With ``dates`` what YAML takes for a date or a time is one.
    Raises BadFile when the file cannot be read as YAML of plain values.
    """
    return _fields_of(path, read_text(path), dates=dates)


def _fields_of(path: Path, text: str, *, dates: bool = False) -> tuple[Any, Lines]:
    node = _compose(path, text)
    lines: Lines = {}
    if node is None:
        return None, lines
    _walk(path, node, (), lines, _Budget(_PLAIN_TAGS | _TIME_TAGS if dates else _PLAIN_TAGS))
    return _construct(path, node), lines


def validate_fields(
    kind: type[_AnyModel], fields: Mapping[str, Any], path: Path, lines: Lines
) -> _AnyModel:
    """``fields`` of the file at ``path`` as a ``kind``; raises BadRequest naming line, field and what is allowed."""
    return _validate(kind, fields, _Where(str(path), lines))


def write_plan_file(path: str | Path, plan: PlanFile, *, force: bool = False) -> None:
    """Write ``plan`` as YAML to ``path``, whole or not at all; only fields that were set stand in it.

    Raises BadFile as `write_whole` does.
    """
    import yaml

    fields = plan.model_dump(mode="json", exclude_unset=True)
    write_whole(path, yaml.safe_dump(fields, sort_keys=False, allow_unicode=True), force=force)


def write_whole(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write ``text`` to ``path``, whole or not at all.

    Raises BadFile when the file exists and ``force`` is not given, or when it cannot be written.
    """
    path = Path(path)
    if path.exists() and not force:
        raise BadFile("planfile-exists", path=str(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text)
        _put(temporary, path, force=force)
    except FileExistsError as error:
        raise BadFile("planfile-exists", path=str(path)) from error
    except OSError as error:
        raise BadFile("planfile-not-written", path=str(path), why=_reason(error)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _put(temporary: Path, path: Path, *, force: bool) -> None:
    """Move the finished file into place; without ``force`` a file that appeared meanwhile stays."""
    if not force:
        try:
            os.link(temporary, path)
            return
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if path.exists():
                raise FileExistsError(path) from None
    temporary.replace(path)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def validate_request(fields: Mapping[str, Any]) -> Request:
    """A `Request` from ``fields``; raises BadRequest that names the field, what was found and what is allowed."""
    return _validate(Request, fields, _Where(None, {}))


def validate_settings(fields: Mapping[str, Any]) -> Settings:
    """`Settings` from ``fields``; raises BadRequest that names the field, what was found and what is allowed."""
    return _validate(Settings, fields, _Where(None, {}))


def validate(kind: type[_AnyModel], fields: Mapping[str, Any]) -> _AnyModel:
    """A ``kind`` from ``fields``; raises BadRequest that names the field, what was found and what is allowed."""
    return _validate(kind, fields, _Where(None, {}))


class _Budget:
    """Counts YAML nodes, an alias each time it is used, so that a small file cannot unfold into a large one."""

    def __init__(self, tags: frozenset[str]) -> None:
        self.nodes = 0
        self.tags = tags  # that a value may have


class _Where:
    """The file and line that a field came from, if any."""

    def __init__(self, path: str | None, lines: Mapping[tuple[str | int, ...], int]) -> None:
        self.path = path
        self.lines = lines

    def of(self, location: tuple[str | int, ...]) -> str:
        if self.path is None:
            return ""
        for end in range(len(location), -1, -1):
            line = self.lines.get(location[:end])
            if line is not None:
                return Note("in-file-line", {"path": self.path, "line": line}).text
        return Note("in-file", {"path": self.path}).text


def read_text(path: Path, limit: int = MAX_FILE_BYTES) -> str:
    """The text of the file at ``path``. Raises BadFile for one that has more than ``limit`` bytes or is no UTF-8."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        raise BadFile("planfile-not-read", path=str(path), why=_reason(error)) from error
    return _decoded(raw, path, limit)


def _decoded(raw: bytes, path: Path, limit: int) -> str:
    if len(raw) > limit:
        raise BadFile("planfile-too-large", path=str(path), limit=limit)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile("planfile-not-text", path=str(path), byte=error.start) from error


def _compose(path: Path, text: str) -> yaml.Node | None:
    """The YAML node tree of ``text``; nothing is constructed yet."""
    import yaml

    try:
        _scan(path, text)
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _not_yaml(path, error) from error
    return node


def _scan(path: Path, text: str) -> None:
    """Refuse depth and size while the text is read, before a tree of it exists."""
    import yaml

    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise BadFile("planfile-too-deep", path=str(path), limit=MAX_DEPTH)
        if count > 2 * MAX_NODES:
            raise BadFile("planfile-unfolds", path=str(path), limit=MAX_NODES)


def _not_yaml(path: Path, error: yaml.YAMLError) -> BadFile:
    mark = getattr(error, "problem_mark", None)
    why = getattr(error, "problem", None) or str(error).splitlines()[0]
    if mark is None:
        return BadFile("planfile-not-yaml", path=str(path), why=why)
    return BadFile("planfile-not-yaml-line", path=str(path), line=mark.line + 1, why=why)


def _walk(
    path: Path,
    node: yaml.Node,
    location: tuple[str | int, ...],
    lines: dict[tuple[str | int, ...], int],
    budget: _Budget,
) -> None:
    """Note the line of every field and refuse tags, depth, size and repeated keys before anything is made."""
    import yaml

    line = node.start_mark.line + 1
    lines.setdefault(location, line)
    budget.nodes += 1
    if budget.nodes > MAX_NODES:
        raise BadFile("planfile-unfolds", path=str(path), limit=MAX_NODES)
    if len(location) > MAX_DEPTH:
        raise BadFile("planfile-too-deep", path=str(path), limit=MAX_DEPTH)
    if node.tag not in budget.tags:
        raise BadFile("planfile-object-tag", path=str(path), line=line, tag=node.tag)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(path, item, (*location, index), lines, budget)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None or key.tag not in _KEY_TAGS:
                raise BadFile("planfile-bad-key", path=str(path), line=key.start_mark.line + 1)
            if name in seen:
                raise BadFile(
                    "planfile-key-twice", path=str(path), line=key.start_mark.line + 1, key=name
                )
            seen.add(name)
            lines[(*location, name)] = key.start_mark.line + 1
            _walk(path, value, (*location, name), lines, budget)


_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null")
)
_TIME_TAGS = frozenset({"tag:yaml.org,2002:timestamp"})
_KEY_TAGS = frozenset({"tag:yaml.org,2002:str"})


def _construct(path: Path, node: yaml.Node) -> Any:
    import yaml

    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
    ) as error:  # "0o9" looks like a number and is none
        line = node.start_mark.line + 1
        raise BadFile(
            "planfile-not-yaml-line", path=str(path), line=line, why=str(error)
        ) from error
    finally:
        loader.dispose()


def _validate(kind: type[_AnyModel], fields: Mapping[str, Any], where: _Where) -> _AnyModel:
    _refuse_yes_no(kind, fields, where)
    try:
        return kind.model_validate(dict(fields))
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        unknown = [detail for detail in details if detail["type"] == "extra_forbidden"]
        if unknown:
            raise _unknown_fields(kind, unknown, where) from error
        raise _bad_field(details[0], where) from error


def _refuse_yes_no(kind: type[BaseModel], fields: Mapping[str, Any], where: _Where) -> None:
    """Python counts ``True`` as 1; a person who writes ``batch: yes`` meant something else."""
    for location, name, value, known in _flat(kind, fields):
        if isinstance(value, bool) and "bool" not in str(known.model_fields[name].annotation):
            place = where.of((*location, name))
            field = ".".join((*location, name))
            raise BadRequest("field-not-yes-no", where=place, field=field, found=value)


def _flat(
    kind: type[BaseModel], fields: Mapping[str, Any], location: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, Any, type[BaseModel]]]:
    """Every known field with the model class that it belongs to."""
    for name, value in fields.items():
        inner = kind.model_fields[name].annotation if name in kind.model_fields else None
        if isinstance(value, Mapping) and isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _flat(inner, value, (*location, name))
        elif inner is not None:
            yield location, name, value, kind


def _unknown_fields(
    kind: type[BaseModel], details: list[ErrorDetails], where: _Where
) -> BadRequest:
    """The sentence for unknown fields: all of them, the nearest known ones, and the known ones."""
    first = tuple(details[0]["loc"])
    near: list[str] = []
    known = sorted(_known_fields(kind, first))
    for detail in details:
        near += get_close_matches(
            str(detail["loc"][-1]), _known_fields(kind, tuple(detail["loc"])), n=1
        )
    return BadRequest(
        "unknown-field",
        where=where.of(first),
        field=", ".join(".".join(str(part) for part in detail["loc"]) for detail in details),
        suggestion=Note("did-you-mean", {"names": ", ".join(near)}).text if near else "",
        allowed=", ".join(known),
    )


def _bad_field(detail: ErrorDetails, where: _Where) -> BadRequest:
    """The sentence for one missing or wrong field."""
    location = tuple(detail["loc"])
    name = ".".join(str(part) for part in location)
    place = where.of(location)
    found = _short(detail["input"])
    if detail["type"] == "missing":
        return BadRequest("missing-field", where=place, field=name)
    context = detail.get("ctx", {})
    code, allowed = _allowed(detail["type"], context)
    return BadRequest(
        code, where=place, field=name, found=found, allowed=allowed, why=detail["msg"]
    )


def _known_fields(kind: type[BaseModel], location: tuple[str | int, ...]) -> set[str]:
    """The field names of the part of ``kind`` that ``location`` points into."""
    for part in location[:-1]:
        inner = kind.model_fields[str(part)].annotation if str(part) in kind.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        kind = inner
    return set(kind.model_fields)


_LIMITS = {
    "greater_than_equal": ("field-at-least", "ge"),
    "greater_than": ("field-more-than", "gt"),
    "less_than_equal": ("field-at-most", "le"),
    "less_than": ("field-less-than", "lt"),
    "literal_error": ("field-one-of", "expected"),
}
_TYPES = {
    "int_type": "field-whole-number",
    "int_parsing": "field-whole-number",
    "int_parsing_size": "field-whole-number",
    "int_from_float": "field-whole-number",
    "float_type": "field-number",
    "float_parsing": "field-number",
    "finite_number": "field-number",
    "bool_type": "field-yes-no",
    "bool_parsing": "field-yes-no",
    "string_type": "field-text",
    "string_too_short": "field-text",
    "string_too_long": "field-text",
    "dict_type": "field-mapping",
    "model_type": "field-mapping",
    "model_attributes_type": "field-mapping",
}


def _allowed(problem: str, context: Mapping[str, Any]) -> tuple[str, str]:
    """The message code for a pydantic problem, and what is allowed instead."""
    if problem in _LIMITS:
        code, key = _LIMITS[problem]
        return code, str(context.get(key, "")).replace("'", "").replace(" or ", ", ")
    return _TYPES.get(problem, "field-wrong"), ""


def kind_of(value: object) -> str:
    """What a value is called in a sentence."""
    return {"list": "list", "str": "text", "NoneType": "nothing"}.get(type(value).__name__, "value")


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
