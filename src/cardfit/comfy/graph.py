"""The normal form of a workflow: active nodes, each input a value or a link to an output that really feeds it.

In: the parsed file, as the graph that ComfyUI's editor saves (0.4, 1.0; links as lists or objects) or as the prompt
that its server is sent. Out: a `Graph`. Subgraphs are laid out flat with the values promoted to their outside, muted
and bypassed nodes are gone, reroutes and set / get pairs are links. Raises BadFile, naming the node where one is at
fault. What a value means is the business of `cardfit.comfy.values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cardfit.comfy.nodes import Known
from cardfit.errors import BadFile

MAX_NODES = 20_000
MAX_NESTING = 20
MAX_HOPS = 10_000
MAX_TITLE = 80
_INPUTS, _OUTPUTS = "-10", "-20"  # the two sides of a subgraph's border
_MUTED, _BYPASSED = 2, 4
_PASSING = frozenset({"Reroute", "SetNode", "Reroute (rgthree)"})


@dataclass(frozen=True, slots=True)
class Link:
    """An output of a node."""

    node: str
    slot: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A link that leads nowhere: from a node or along a path that the file does not have."""

    node: str
    why: str


@dataclass(slots=True)
class Node:
    """An active node. ``links`` has the inputs that are fed by an output, ``values`` what its widgets say."""

    id: str
    type: str
    title: str
    links: dict[str, Link | Broken] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    input_types: dict[str, str] = field(default_factory=dict)
    output_types: list[str] = field(default_factory=list)
    models: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class Graph:
    """The active nodes by id; the id of a node inside a subgraph begins with that of the subgraph's node."""

    nodes: dict[str, Node]
    form: str

    def consumers(self) -> dict[str, list[tuple[str, str]]]:
        """For each node the (node, input) pairs that it feeds."""
        found: dict[str, list[tuple[str, str]]] = {}
        for node in self.nodes.values():
            for name, link in node.links.items():
                if isinstance(link, Link):
                    found.setdefault(link.node, []).append((node.id, name))
        return found


def shown(text: object) -> str:
    """A title as it may be shown: one line, no control signs, not endless.

    >>> shown("a\\x1b[31m\\nb")
    'a [31m b'
    """
    plain = "".join(sign if sign.isprintable() else " " for sign in str(text)[: 4 * MAX_TITLE])
    plain = " ".join(plain.split())
    return plain if len(plain) <= MAX_TITLE else plain[: MAX_TITLE - 3] + "..."


def graph_of(raw: object, known: Known, path: str) -> Graph:
    """The normal form of a parsed workflow file. Raises BadFile."""
    if isinstance(raw, Mapping) and isinstance(raw.get("prompt"), Mapping) and "nodes" not in raw:
        raw = raw["prompt"]
    if not isinstance(raw, Mapping):
        raise BadFile("comfy-not-a-workflow", path=path)
    if isinstance(raw.get("nodes"), list):
        return _Flat(raw, known, path).graph()
    prompt = {
        str(key): value
        for key, value in raw.items()
        if isinstance(value, Mapping) and isinstance(value.get("class_type"), str)
    }
    if not prompt or len(prompt) < len(raw) / 2:
        raise BadFile("comfy-not-a-workflow", path=path)
    return _from_prompt(prompt, path)


def _from_prompt(prompt: Mapping[str, Mapping[str, Any]], path: str) -> Graph:
    """The format that the server is sent: inputs are values or ``[node, slot]``."""
    if len(prompt) > MAX_NODES:
        raise BadFile("comfy-too-many-nodes", path=path, limit=MAX_NODES)
    nodes: dict[str, Node] = {}
    for key, value in prompt.items():
        meta = value.get("_meta")
        title = meta.get("title") if isinstance(meta, Mapping) else None
        node = Node(key, value["class_type"], shown(title or value["class_type"]))
        inputs = value.get("inputs", {})
        if not isinstance(inputs, Mapping):
            raise BadFile("comfy-bad-node", path=path, node=_named(node.title, key), part="inputs")
        for name, given in inputs.items():
            if isinstance(given, list) and len(given) == 2 and isinstance(given[1], int):
                source = str(given[0])
                there = source in prompt
                node.links[name] = (
                    Link(source, given[1]) if there else Broken(source, "comfy-link-to-nowhere")
                )
            else:
                node.values[name] = given
        nodes[key] = node
    return Graph(nodes, "api")


def _named(title: object, node_id: object) -> str:
    return f"{shown(title)} (#{shown(node_id)})"


class _Scope:
    """One level of a workflow: the top, or the inside of one subgraph node."""

    def __init__(self, flat: _Flat, level: Mapping[str, Any], prefix: str, depth: int) -> None:
        self.prefix, self.depth = prefix, depth
        self.parent: _Scope | None = None
        self.holder: Mapping[str, Any] = {}  # the node outside that stands for this level
        self.inputs: list[Any] = _list(level.get("inputs")) if depth else []
        self.promoted: dict[tuple[str, str], Any] = {}
        self.children: dict[str, _Scope] = {}
        self.nodes: dict[str, Mapping[str, Any]] = {}
        for raw in _list(level.get("nodes")):
            if not isinstance(raw, Mapping) or "id" not in raw:
                raise BadFile("comfy-bad-node", path=flat.path, node=prefix or "?", part="id")
            if not isinstance(raw.get("type"), str):
                node = _named(raw.get("title", "?"), raw["id"])
                raise BadFile("comfy-bad-node", path=flat.path, node=node, part="type")
            self.nodes[str(raw["id"])] = raw
        self.links: dict[str, tuple[str, int, str, int]] = {}
        for link in _list(level.get("links")):
            found = _link(link)
            if found is None:
                raise BadFile("comfy-bad-link", path=flat.path, link=shown(link))
            self.links[found[0]] = found[1]


def _list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, Mapping) else []


def _link(raw: object) -> tuple[str, tuple[str, int, str, int]] | None:
    """Link id, then (from node, from slot, to node, to slot); None for anything else."""
    if isinstance(raw, list) and len(raw) >= 5:
        parts = raw[:5]
    elif isinstance(raw, Mapping):
        keys = ("id", "origin_id", "origin_slot", "target_id", "target_slot")
        parts = [raw.get(key) for key in keys]
    else:
        return None
    key, start, start_slot, end, end_slot = parts
    if key is None or start is None or end is None:
        return None
    slots = (start_slot, end_slot)
    if not all(isinstance(slot, int) for slot in slots):
        return None
    return str(key), (str(start), int(start_slot), str(end), int(end_slot))


class _Flat:
    """Lays the levels of an editor's graph out flat."""

    def __init__(self, raw: Mapping[str, Any], known: Known, path: str) -> None:
        self.known, self.path, self.count = known, path, 0
        definitions = raw.get("definitions")
        subgraphs = definitions.get("subgraphs") if isinstance(definitions, Mapping) else None
        self.kinds = {
            str(each["id"]): each
            for each in _list(subgraphs)
            if isinstance(each, Mapping) and "id" in each
        }
        self.top = self._scope(raw, "", 0)

    def _scope(self, level: Mapping[str, Any], prefix: str, depth: int) -> _Scope:
        if depth > MAX_NESTING:
            raise BadFile("comfy-too-deep", path=self.path, node=prefix, limit=MAX_NESTING)
        scope = _Scope(self, level, prefix, depth)
        self.count += len(scope.nodes)
        if self.count > MAX_NODES:
            raise BadFile("comfy-too-many-nodes", path=self.path, limit=MAX_NODES)
        for key, raw in scope.nodes.items():
            kind = self.kinds.get(raw["type"])
            if kind is None:
                continue
            child = self._scope(kind, f"{prefix}{key}:", depth + 1)
            child.parent, child.holder = scope, raw
            child.promoted = _promoted(raw, kind, child)
            scope.children[key] = child
        return scope

    def graph(self) -> Graph:
        nodes: dict[str, Node] = {}
        for scope in self._scopes(self.top):
            for key, raw in scope.nodes.items():
                passing = raw["type"] in _PASSING or raw["type"] == "GetNode"
                if key in scope.children or passing or _mode(raw) in (_MUTED, _BYPASSED):
                    continue
                node = self._node(scope, key, raw)
                nodes[node.id] = node
        return Graph(nodes, "ui")

    def _scopes(self, scope: _Scope) -> Iterator[_Scope]:
        """Every level that runs: the inside of a muted or bypassed subgraph does not."""
        yield scope
        for key, child in scope.children.items():
            if _mode(scope.nodes[key]) not in (_MUTED, _BYPASSED):
                yield from self._scopes(child)

    def _node(self, scope: _Scope, key: str, raw: Mapping[str, Any]) -> Node:
        properties = raw.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        title = raw.get("title") or properties.get("Node name for S&R") or raw["type"]
        node = Node(scope.prefix + key, raw["type"], shown(title))
        models = [each for each in _list(properties.get("models")) if isinstance(each, Mapping)]
        node.models = tuple(dict(each) for each in models)
        node.output_types = [
            str(each.get("type")) for each in _list(raw.get("outputs")) if isinstance(each, Mapping)
        ]
        node.values = self._values(raw)
        for name in node.values:
            outside = self._outside(scope, key, name)
            if outside is not None:
                node.values[name] = outside[0]
        for entry in _list(raw.get("inputs")):
            if not isinstance(entry, Mapping):
                raise BadFile(
                    "comfy-bad-node", path=self.path, node=_named(title, key), part="inputs"
                )
            name = str(entry.get("name", ""))
            node.input_types[name] = str(entry.get("type"))
            if entry.get("link") is None:
                continue
            source = self._source(scope, str(entry["link"]), key, name)
            if isinstance(source, (Link, Broken)):
                node.links[name] = source
            elif source is not None:
                node.values[name] = source[0]
        return node

    def _values(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Widget values by name: as stored, by the positions of the data, or in the order of the listed widgets."""
        values = raw.get("widgets_values")
        if isinstance(values, Mapping):
            return {str(name): value for name, value in values.items()}
        if not isinstance(values, list):
            return {}
        kind = self.known.kind(raw["type"])
        if kind is not None and kind.widgets:
            return kind.named(values)
        names = [
            str(each.get("name"))
            for each in _list(raw.get("inputs"))
            if isinstance(each, Mapping) and isinstance(each.get("widget"), Mapping)
        ]
        return dict(zip(names, values, strict=True)) if len(names) == len(values) else {}

    def _outside(self, scope: _Scope, key: str, name: str) -> tuple[Any] | None:
        """The value that a subgraph's outside gives a widget inside which no link feeds; the outermost wins."""
        found: tuple[Any] | None = None
        while scope.parent is not None:
            if (key, name) in scope.promoted:
                found = (scope.promoted[key, name],)
            key, scope = str(scope.holder["id"]), scope.parent
        return found

    def _source(
        self, scope: _Scope, link: str, to: str, name: str
    ) -> Link | Broken | tuple[Any] | None:
        """The output behind a link, a value from the outside of a subgraph, or None where nothing comes in."""
        value: tuple[Any] | None = None
        inner: _Scope | None = (
            None  # where the way first met a subgraph's border, and at which input
        )
        first = 0
        node_id, hops = to, 0
        while True:
            hops += 1
            if hops > MAX_HOPS:
                raise BadFile("comfy-cycle", path=self.path, node=self._title(scope, node_id))
            if link not in scope.links:
                # the editor drops such links; a subgraph's value from outside still holds
                return value or Broken(scope.prefix + to, "comfy-link-unknown")
            start, slot, *_ = scope.links[link]
            if start == _INPUTS and scope.parent is not None:
                if inner is None:
                    inner, first = scope, slot
                step = self._through_border(scope, slot, node_id, name)
                if step.value is not None:
                    value = step.value
                if step.link is None:
                    return value or self._widget_inside(inner, first)
                node_id, name = str(scope.holder["id"]), step.name
                scope, link = scope.parent, step.link
                continue
            found = self._inwards(scope, start, slot)
            if found is None or isinstance(found, (Link, Broken)):
                return found
            scope, link, node_id = found

    def _through_border(self, scope: _Scope, slot: int, node_id: str, name: str) -> _Border:
        """From inside a subgraph to the input of the node that stands for it."""
        entry = scope.inputs[slot] if 0 <= slot < len(scope.inputs) else {}
        border = str(entry.get("name", "")) if isinstance(entry, Mapping) else ""
        found = scope.promoted.get((_BORDER, border), scope.promoted.get((node_id, name), _NOTHING))
        value = None if found is _NOTHING else (found,)
        for each in _list(scope.holder.get("inputs")):
            if isinstance(each, Mapping) and each.get("name") == border:
                link = each.get("link")
                return _Border(None if link is None else str(link), border, value)
        return _Border(None, border, value)

    def _widget_inside(self, scope: _Scope | None, slot: int) -> tuple[Any] | None:
        """What a subgraph's input says where nothing outside feeds it: the first widget inside that it stands for."""
        if scope is None or not 0 <= slot < len(scope.inputs):
            return None
        entry = scope.inputs[slot]
        for link in _list(entry.get("linkIds")) if isinstance(entry, Mapping) else []:
            _, _, end, end_slot = scope.links.get(str(link), ("", 0, "", -1))
            inputs = _list(scope.nodes.get(end, {}).get("inputs"))
            if not 0 <= end_slot < len(inputs) or not isinstance(inputs[end_slot], Mapping):
                continue
            if not isinstance(inputs[end_slot].get("widget"), Mapping):
                continue
            name = str(inputs[end_slot].get("name"))
            child = scope.children.get(end)
            if child is None:
                values = self._values(scope.nodes[end])
                return (values[name],) if name in values else None
            if (_BORDER, name) in child.promoted:
                return (child.promoted[_BORDER, name],)
            places = [at for at, each in enumerate(child.inputs) if _name(each) == name]
            return self._widget_inside(child, places[0]) if places else None
        return None

    def _inwards(
        self, scope: _Scope, start: str, slot: int
    ) -> Link | Broken | tuple[_Scope, str, str] | None:
        """What output ``slot`` of node ``start`` is: itself, nothing, or another link to follow."""
        raw = scope.nodes.get(start)
        if raw is None:
            return Broken(scope.prefix + start, "comfy-link-to-nowhere")
        mode = _mode(raw)
        if mode == _MUTED:
            return None
        if mode == _BYPASSED:
            link = _bypass(raw, slot)
            return None if link is None else (scope, link, start)
        child = scope.children.get(start)
        if child is not None:
            for key, (_, _, end, end_slot) in child.links.items():
                if end == _OUTPUTS and end_slot == slot:
                    return child, key, start
            return None
        if raw["type"] in _PASSING:
            return _first_link(scope, raw, start)
        if raw["type"] == "GetNode":
            return self._set_node(scope, raw)
        return Link(scope.prefix + start, slot)

    def _set_node(self, scope: _Scope, raw: Mapping[str, Any]) -> tuple[_Scope, str, str] | None:
        """The link into the node that sets what this one gets."""
        wanted = _list(raw.get("widgets_values"))[:1]
        for key, other in scope.nodes.items():
            if other["type"] == "SetNode" and _list(other.get("widgets_values"))[:1] == wanted:
                return _first_link(scope, other, key)
        return None

    def _title(self, scope: _Scope, key: str) -> str:
        raw = scope.nodes.get(key, {})
        return _named(raw.get("title") or raw.get("type", "?"), scope.prefix + key)


_BORDER = "-1"
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class _Border:
    """What stands outside a subgraph's input: a link, or a value, or neither."""

    link: str | None
    name: str
    value: tuple[Any] | None


def _name(entry: object) -> str:
    return str(entry.get("name")) if isinstance(entry, Mapping) else ""


def _mode(raw: Mapping[str, Any]) -> int:
    mode = raw.get("mode", 0)
    return mode if isinstance(mode, int) else 0


def _first_link(scope: _Scope, raw: Mapping[str, Any], key: str) -> tuple[_Scope, str, str] | None:
    for each in _list(raw.get("inputs")):
        if isinstance(each, Mapping) and each.get("link") is not None:
            return scope, str(each["link"]), key
    return None


def _bypass(raw: Mapping[str, Any], slot: int) -> str | None:
    """The link that a bypassed node hands through: of an input of the output's type, the one at its place first."""
    outputs, inputs = _list(raw.get("outputs")), _list(raw.get("inputs"))
    if not 0 <= slot < len(outputs) or not isinstance(outputs[slot], Mapping):
        return None
    wanted = set(str(outputs[slot].get("type")).split(","))
    order = [slot, *(at for at in range(len(inputs)) if at != slot)]
    for at in order:
        if at < len(inputs) and isinstance(inputs[at], Mapping):
            each = inputs[at]
            kinds = set(str(each.get("type")).split(","))
            if wanted & kinds and each.get("link") is not None:
                return str(each["link"])
    return None


def _promoted(
    raw: Mapping[str, Any], kind: Mapping[str, Any], inside: _Scope
) -> dict[tuple[str, str], Any]:
    """The values on a subgraph's node, by (inner node, widget), or by its own input's name."""
    values = raw.get("widgets_values")
    properties = raw.get("properties")
    pairs = properties.get("proxyWidgets") if isinstance(properties, Mapping) else None
    if isinstance(values, Mapping):
        return {(_BORDER, str(name)): value for name, value in values.items()}
    if not isinstance(values, list) or not values:
        return {}
    if isinstance(pairs, list) and len(pairs) == len(values):
        keys = [
            (str(pair[0]), str(pair[1])) if isinstance(pair, list) and len(pair) == 2 else None
            for pair in pairs
        ]
        return {key: value for key, value in zip(keys, values, strict=True) if key is not None}
    names = [
        str(each.get("name"))
        for each in _list(kind.get("inputs"))
        if isinstance(each, Mapping) and _feeds_widget(each, inside)
    ]
    if len(names) != len(values):
        return {}
    return {(_BORDER, name): value for name, value in zip(names, values, strict=True)}


def _feeds_widget(entry: Mapping[str, Any], inside: _Scope) -> bool:
    """Whether a subgraph's input feeds a widget of a node inside."""
    for link in _list(entry.get("linkIds")):
        _, _, end, slot = inside.links.get(str(link), ("", 0, "", 0))
        inputs = _list(inside.nodes.get(end, {}).get("inputs"))
        if slot < len(inputs) and isinstance(inputs[slot], Mapping) and "widget" in inputs[slot]:
            return True
    return False
