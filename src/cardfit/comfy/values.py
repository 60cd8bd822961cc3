"""The value of an input or of what an output brings, with where it came from; or the question that would settle it.

In: a graph, what is known of node types, and answers a person gave. Out: `Found` values. A value is traced back
through links, switches, arithmetic and sizes to the widgets that it really comes from; a widget that a link feeds is
never read. What the file cannot say raises `Unknown` with the questions. Raises BadFile, naming the node, for circular
links, links to nowhere and numbers that no node takes.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from cardfit.comfy.expressions import ExpressionError, dotted, evaluate, evaluate_tree, parse
from cardfit.comfy.graph import Broken, Graph, Link, Node, shown
from cardfit.comfy.nodes import Known, Output
from cardfit.errors import BadFile
from cardfit.messages import say

MAX_DEPTH = 150
MAX_SIDE = 65_536
_STAND_IN = 1024  # for a value that is asked for, so that the rest of a rule is asked for too
_COUNTS = frozenset({"width", "height", "frames", "batch", "steps"})
_SAME_TYPED = frozenset({"MODEL", "CLIP", "VAE", "CONDITIONING", "GUIDER"})


class Missing(BaseModel):
    """A question: which input of which node would settle it, and why the file cannot."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str
    id: str
    input: str
    why: str

    @classmethod
    def of(cls, question: Question) -> Missing:
        """The question in words."""
        why = say(question.code, {"type": question.type, "input": question.input})
        return cls(node=question.node, id=question.id, input=question.input, why=why)


@dataclass(frozen=True, slots=True)
class Question:
    """A question before it is put in words."""

    node: str
    id: str
    input: str
    type: str
    code: str


class Unknown(Exception):
    """The file does not say; ``questions`` would settle it."""

    def __init__(self, *questions: Question) -> None:
        self.questions = questions
        super().__init__(*questions)


@dataclass(frozen=True, slots=True)
class Found:
    """A value and the widgets or answers that it comes from, as ``title.input``."""

    value: Any
    origins: tuple[str, ...]


class Values:
    """Asks a graph for values; every answer is kept."""

    def __init__(
        self, graph: Graph, known: Known, answers: Mapping[tuple[str, str], Any], path: str
    ) -> None:
        self.graph, self.known, self.answers, self.path = graph, known, answers, path
        self.strange: set[str] = set()  # ids of nodes met whose type is unknown
        self._kept: dict[tuple[str, str, int], Found | Unknown] = {}
        self._running: set[tuple[str, str, int]] = set()

    # --- what is asked for

    def input(self, node: Node, name: str) -> Found:
        """The value of an input: an answer, what its link brings, its widget, or the type's default."""
        if (node.id, name) in self.answers:
            return Found(self.answers[node.id, name], (f"{node.title}.{name}",))
        link = node.links.get(name)
        if link is not None:
            return self.attribute(self._unbroken(node, link), "value")
        if name in node.values:
            return Found(self._plain(node, name, node.values[name]), (f"{node.title}.{name}",))
        kind = self.known.kind(node.type)
        if kind is not None and name in kind.defaults:
            return Found(kind.defaults[name], ())
        raise self._ask(node, name, "comfy-ask-not-there")

    def rule(self, node: Node, rule: str, attribute: str = "value") -> Found:
        """The value of a rule of the node data, for ``node``; ``attribute`` says what it must be one of."""
        return self._ruled(node, rule, attribute)

    def of_input(self, node: Node, name: str, attribute: str) -> Found:
        """What the output behind an input brings: ``width``, ``steps`` ..."""
        return self.attribute(self._link(node, name), attribute)

    def attribute(self, link: Link, attribute: str) -> Found:
        """What an output brings. Raises Unknown with the questions that would settle it."""
        key = (link.node, attribute, link.slot)
        kept = self._kept.get(key)
        if isinstance(kept, Found):
            return kept
        if kept is not None:
            raise kept
        node = self.node(link)
        if key in self._running:
            raise BadFile("comfy-cycle", path=self.path, node=f"{node.title} (#{node.id})")
        if len(self._running) > MAX_DEPTH:
            raise BadFile(
                "comfy-chain-too-long",
                path=self.path,
                node=f"{node.title} (#{node.id})",
                limit=MAX_DEPTH,
            )
        self._running.add(key)
        try:
            found = self._settled(node, link.slot, attribute)
        except Unknown as unknown:
            self._kept[key] = unknown
            raise
        finally:
            self._running.discard(key)
        self._kept[key] = found
        return found

    def node(self, link: Link) -> Node:
        """The node of an output. A link out of a muted part leads to a node that does not run."""
        found = self.graph.nodes.get(link.node)
        if found is None:
            raise BadFile("comfy-link-to-nowhere", path=self.path, node=link.node, where=link.node)
        return found

    def walk(self, link: Link) -> list[Link]:
        """The outputs that an output is the same as, itself first, as far back as they are."""
        found = [link]
        seen = {link}
        while True:
            node = self.node(found[-1])
            back = self._like(node, found[-1].slot)
            if back is None:
                return found
            if back in seen or len(found) > MAX_DEPTH:
                raise BadFile("comfy-cycle", path=self.path, node=f"{node.title} (#{node.id})")
            seen.add(back)
            found.append(back)

    def feeds(self, node: Node) -> list[Link]:
        """The outputs that a node really takes: of a switch the chosen one only."""
        kind = self.known.kind(node.type)
        like = None if kind is None or (output := kind.output(0)) is None else output.like
        choosing = like is not None and isinstance(parse(like), ast.IfExp)
        if choosing:
            try:
                chosen = self._like(node, 0)
            except Unknown:
                choosing = False
            else:
                return [] if chosen is None else [chosen]
        return [link for link in node.links.values() if isinstance(link, Link)]

    # --- how it is settled

    def _settled(self, node: Node, slot: int, attribute: str) -> Found:
        kind = self.known.kind(node.type)
        if (node.id, attribute) in self.answers:
            answer = self.answers[node.id, attribute]
            if attribute in _COUNTS:
                answer = self._count(node, attribute, answer)
            return Found(answer, (f"{node.title}.{attribute}",))

        if kind is None or (kind.output(slot) is None and kind.formula is None and not kind.same):
            if not self.known.knows(node.type):
                self.strange.add(node.id)
            raise self._ask(node, attribute, "comfy-ask-type")
        if kind.formula is not None:
            return self._formula(node, kind.formula, slot)
        output = kind.output(slot) or Output()
        if attribute in output.rules:
            return self._ruled(node, output.rules[attribute], attribute)
        if attribute in output.ask:
            raise self._ask(node, attribute, "comfy-ask-picture")
        if attribute == "value" and output.like is not None:
            return self._ruled(node, output.like, attribute)
        back = self._like(node, slot)
        if back is not None:
            return self.attribute(back, attribute)
        raise self._ask(node, attribute, "comfy-ask-type")

    def _like(self, node: Node, slot: int) -> Link | None:
        """The output that output ``slot`` of a node is the same as, None where it begins something new."""
        kind = self.known.kind(node.type)
        if kind is None:
            if not self.known.knows(node.type):
                self.strange.add(node.id)
            return self._same_type(node, slot)
        output = kind.output(slot)
        if output is not None and output.like is not None:
            name = self._chosen(node, parse(output.like))
            link = node.links.get(name)
            return None if link is None else self._unbroken(node, link)
        return self._same_type(node, slot) if kind.same else None

    def _same_type(self, node: Node, slot: int) -> Link | None:
        """The first linked input of the output's type; where the file names no types, the first of the usual name."""
        if 0 <= slot < len(node.output_types):
            wanted = node.output_types[slot]
            if wanted not in _SAME_TYPED and self.known.kind(node.type) is None:
                return None
            for name, link in node.links.items():
                if wanted in node.input_types.get(name, "").split(","):
                    return self._unbroken(node, link)
            return None
        if node.output_types:
            return None
        usual = ("model", "clip", "vae", "image", "images", "conditioning", "positive", "mask")
        for name in usual:
            if name in node.links:
                return self._unbroken(node, node.links[name])
        return None

    def _chosen(self, node: Node, tree: ast.expr) -> str:
        """The input that a rule such as ``on_true if switch else on_false`` names."""
        while isinstance(tree, ast.IfExp):
            test = self._tree(node, tree.test, "value")
            tree = tree.body if test.value else tree.orelse
        return dotted(tree) or ""

    def _formula(self, node: Node, name: str, slot: int) -> Found:
        text = self.input(node, name)
        origins = list(text.origins)

        def named(variable: str) -> Any:
            for each in (f"values.{variable}", variable):
                if each in node.links or each in node.values:
                    found = self.input(node, each)
                    origins.extend(found.origins)
                    return found.value
            raise self._ask(node, variable, "comfy-ask-not-there")

        try:
            value = evaluate(str(text.value), named)
            value = (float, int, bool)[min(slot, 2)](value)
        except (ExpressionError, ValueError, TypeError, OverflowError):
            raise self._ask(node, "value", "comfy-ask-formula") from None
        return Found(value, tuple(dict.fromkeys(origins)))

    def _ruled(self, node: Node, rule: str, attribute: str) -> Found:
        return self._tree(node, parse(rule), attribute)

    def _tree(self, node: Node, tree: ast.expr, attribute: str) -> Found:
        origins: list[str] = []
        questions: list[Question] = []

        def named(name: str) -> Any:
            if name == "unknown":
                raise self._ask(node, attribute, "comfy-ask-rule")
            try:
                found = self._named(node, name)
            except Unknown as unknown:  # the other names may have questions of their own
                questions.extend(unknown.questions)
                return _STAND_IN
            origins.extend(found.origins)
            return found.value

        try:
            value = self._with_tables(tree, named)
        except ExpressionError:
            if not questions:
                raise self._ask(node, attribute, "comfy-ask-formula") from None
            value = None
        if questions:
            raise Unknown(*dict.fromkeys(questions))
        if attribute in _COUNTS:
            value = self._count(node, attribute, value)
        return Found(value, tuple(dict.fromkeys(origins)))

    def _with_tables(self, tree: ast.expr, named: Any) -> Any:
        """A rule's value; ``TABLE_width(w, h)`` is the side of the table's size nearest in aspect ratio."""
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            table, _, side = tree.func.id.rpartition("_")
            if table in self.known.tables:
                width, height = (evaluate_tree(each, named) for each in tree.args)
                if not width or not height:
                    raise ExpressionError
                sizes = self.known.tables[table]
                near = min(sizes, key=lambda size: abs(size[0] / size[1] - width / height))
                return near[side == "height"]
        return evaluate_tree(tree, named)

    def _named(self, node: Node, name: str) -> Found:
        """A name of a rule: an input, what an input brings, or whether and how many inputs are linked."""
        if name.startswith("has."):
            return Found(name[4:] in node.links, ())
        if name.startswith("count."):
            return Found(sum(each.startswith(name[6:]) for each in node.links), ())
        if (node.id, name) in self.answers or name in node.links or name in node.values:
            return self.input(node, name)
        head, _, tail = name.rpartition(".")
        if head and (head in node.links or head not in node.values):
            return self.attribute(self._link(node, head), tail)
        return self.input(node, name)

    def _link(self, node: Node, name: str) -> Link:
        link = node.links.get(name)
        if link is None:
            raise self._ask(node, name, "comfy-ask-unlinked")
        return self._unbroken(node, link)

    def _unbroken(self, node: Node, link: Link | Broken) -> Link:
        if isinstance(link, Broken):
            where = f"{node.title} (#{node.id})"
            raise BadFile("comfy-link-to-nowhere", path=self.path, node=link.node, where=where)
        return link

    def _plain(self, node: Node, name: str, value: Any) -> Any:
        """A widget's value; a number that is none is refused."""
        if isinstance(value, float) and not math.isfinite(value):
            where = f"{node.title} (#{node.id})"
            raise BadFile("comfy-bad-number", path=self.path, node=where, input=name, found=value)
        return value

    def _count(self, node: Node, attribute: str, value: Any) -> int:
        """A size, or a number of frames or steps, as a whole number that can be one."""
        least = 0 if attribute == "steps" else 1
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or not least <= value <= MAX_SIDE:
            where = f"{node.title} (#{node.id})"
            raise BadFile(
                "comfy-bad-number", path=self.path, node=where, input=attribute, found=_short(value)
            )
        return int(value)

    def _ask(self, node: Node, name: str, code: str) -> Unknown:
        return Unknown(Question(node.title, node.id, name, shown(node.type), code))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
