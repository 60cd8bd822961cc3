"""Sampler chains as requests: which samplers run one after another on the same latent, and what each of them does.

In: a graph and its values. Out: `Chain` values, each with its passes in order, the files it loads, its decoder and what
it writes. Two experts, a second pass at a larger size and the extensions of a clip are passes of one chain; a chain
begins at a latent that no sampler has touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from cardfit.comfy.graph import Graph, Link, Node
from cardfit.comfy.nodes import Known, NodeKind
from cardfit.comfy.values import Found, Question, Unknown, Values

_DECODER_HOPS = 200


@dataclass(slots=True)
class Step:
    """One sampler of a chain: its values as found, None where the file does not say."""

    node: Node
    kind: NodeKind
    after: str | None  # the id of the sampler before it
    found: dict[str, Found] = field(default_factory=dict)
    models: list[Node] = field(default_factory=list)
    makes: str | None = None  # audio or 3d: no picture comes of it
    direct: bool = False  # goes on with the steps of the one before, as a second expert does

    def value(self, name: str) -> Any:
        """A found value, or None."""
        found = self.found.get(name)
        return None if found is None else found.value


@dataclass(slots=True)
class Chain:
    """Samplers that run one after another, what they load, and what becomes of the result."""

    steps: list[Step]
    loaders: list[Node] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    decoder: Node | None = None
    ends: list[Node] = field(default_factory=list)
    guidance: Found | None = None
    missing: list[Question] = field(default_factory=list)

    @property
    def makes(self) -> str | None:
        """``audio`` or ``3d`` where no picture comes of it."""
        return next((step.makes for step in self.steps if step.makes), None)


class Chains:
    """Finds the chains of a graph."""

    def __init__(self, graph: Graph, known: Known, values: Values) -> None:
        self.graph, self.known, self.values = graph, known, values
        self.running = self._running()
        self.missing: list[Question] = []

    def find(self) -> list[Chain]:
        """The chains, in the order in which their first samplers stand in the file."""
        steps = self._steps()
        chains = [Chain(each) for each in self._grouped(steps)]
        samplers = {step.node.id for step in steps}
        for chain in chains:
            for step in chain.steps:
                if not chain.makes:
                    self._read(step, chain)
            self._closure(chain, samplers)
        self._ends(chains)
        return chains

    def ask(self, chain: Chain, of: Callable[[], Found]) -> Found | None:
        """A value, or None with its questions noted."""
        try:
            return of()
        except Unknown as unknown:
            chain.missing += [each for each in unknown.questions if each not in chain.missing]
            return None

    # --- which nodes run

    def _running(self) -> dict[str, Node]:
        """The nodes that an end of the graph needs; where no end needs a sampler, all of them."""
        fed = self.graph.consumers()
        ends = [node for node in self.graph.nodes.values() if self._is_end(node, node.id in fed)]
        found: dict[str, Node] = {}
        left = ends
        while left:
            node = left.pop()
            if node.id in found:
                continue
            found[node.id] = node
            left += [
                self.graph.nodes[link.node]
                for link in self.values.feeds(node)
                if link.node in self.graph.nodes
            ]
        if not any(self._samples(node) for node in found.values()):
            return dict(self.graph.nodes)
        return {key: node for key, node in self.graph.nodes.items() if key in found}

    def _saves(self, node: Node) -> bool:
        kind = self.known.kind(node.type)
        return kind is not None and kind.saves is not None

    def _is_end(self, node: Node, feeds: bool) -> bool:
        return self._saves(node) or (not feeds and self.known.kind(node.type) is None)

    # --- samplers

    def _steps(self) -> list[Step]:
        found = []
        for node in self.running.values():
            kind = self.known.kind(node.type)
            if kind is None or kind.sampler is None:
                continue
            step = Step(node, kind, self._before(node, kind))
            for link in self._path(node, kind.sampler.latent):
                begun = self.known.kind(self.values.node(link).type)
                step.makes = step.makes or (None if begun is None else begun.makes)
            found.append(step)
        return found

    def _before(self, node: Node, kind: NodeKind) -> str | None:
        """The sampler whose result this one works on.

        A picture that is encoded and then drowned in noise brings nothing but its size.
        """
        assert kind.sampler is not None
        encoded = False
        for link in self._path(node, kind.sampler.latent):
            other = self.values.node(link)
            if self._samples(other) and other.id != node.id:
                return None if encoded and self._from_noise(node, kind) else other.id
            other_kind = self.known.kind(other.type)
            encoded = encoded or (other_kind is not None and other_kind.encodes)
            for name in self._continues(other):
                for more in self._path(other, name):
                    if self._samples(self.values.node(more)):
                        return more.node
        return None

    def _from_noise(self, node: Node, kind: NodeKind) -> bool:
        """Whether a sampler surely begins at pure noise."""
        assert kind.sampler is not None
        try:
            whole = self.values.rule(node, kind.sampler.denoise).value >= 1
        except (Unknown, TypeError):
            return False
        try:
            return bool(whole and not self.values.rule(node, kind.sampler.start).value)
        except Unknown:
            return bool(whole)

    def _samples(self, node: Node) -> bool:
        kind = self.known.kind(node.type)
        return kind is not None and kind.sampler is not None

    def _continues(self, node: Node) -> tuple[str, ...]:
        kind = self.known.kind(node.type)
        return () if kind is None else tuple(each for each in kind.continues if each in node.links)

    def _path(self, node: Node, name: str) -> list[Link]:
        """The outputs that an input is the same as; none where that hangs on something unknown."""
        link = node.links.get(name)
        if not isinstance(link, Link):
            if link is not None:
                self.values.of_input(node, name, "width")  # says that the link leads nowhere
            return []
        try:
            return self.values.walk(link)
        except Unknown:
            return []

    def _grouped(self, steps: list[Step]) -> list[list[Step]]:
        by_id = {step.node.id: step for step in steps}
        roots: dict[str, list[tuple[int, int, Step]]] = {}
        for place, step in enumerate(steps):
            depth, at, seen = 0, step, {step.node.id}
            while at.after in by_id and at.after not in seen:
                at = by_id[at.after]
                seen.add(at.node.id)
                depth += 1
            roots.setdefault(at.node.id, []).append((depth, place, step))
        return [[step for *_, step in sorted(group, key=_place)] for group in roots.values()]

    def _read(self, step: Step, chain: Chain) -> None:
        sampler, node = step.kind.sampler, step.node
        assert sampler is not None
        for name, rule in (("steps", sampler.steps), ("cfg", sampler.cfg)):
            found = self.ask(chain, lambda r=rule, n=name: self.values.rule(node, r, n))  # type: ignore[misc]
            if found is not None:
                step.found[name] = found
        for name in ("width", "height", "frames", "batch"):
            found = self.ask(
                chain,
                lambda name=name: self.values.of_input(node, sampler.latent, name),  # type: ignore[misc]
            )
            if found is not None:
                step.found[name] = found
        for name, rule in (
            ("start", sampler.start),
            ("denoise", sampler.denoise),
            ("seed", "noise_seed"),
            ("seed", "seed"),
        ):
            try:
                step.found.setdefault(name, self.values.rule(node, rule))
            except Unknown:
                continue
        step.direct = bool(step.after) and bool(step.value("start"))
        step.models = self._models(node, sampler.model)
        for link in self._path(node, sampler.latent):
            begun = self.known.kind(self.values.node(link).type)
            if begun is not None and begun.encodes:
                chain.marks.add("encoded")

    def _models(self, node: Node, name: str) -> list[Node]:
        """The nodes along the way of the model, from the loader to the sampler."""
        found = [self.values.node(link) for link in self._path(node, name)]
        return list({each.id: each for each in reversed(found)}.values())

    # --- what a chain takes

    def _closure(self, chain: Chain, samplers: set[str]) -> None:
        own = {step.node.id for step in chain.steps}
        left: list[Node] = [step.node for step in chain.steps]
        seen: dict[str, Node] = {}
        while left:
            node = left.pop()
            if node.id in seen or (node.id in samplers and node.id not in own):
                continue
            seen[node.id] = node
            left += [
                self.graph.nodes[link.node]
                for link in self.values.feeds(node)
                if link.node in self.graph.nodes
            ]
        for node in self._in_order(seen):
            kind = self.known.kind(node.type)
            if kind is None:
                continue
            if kind.loads:
                chain.loaders.append(node)
            if kind.marks is not None and _has_picture(node):
                chain.marks.add(kind.marks)
            if node.type.startswith("LoadImage"):
                chain.marks.add("picture")
            output = kind.output(0)
            if output is not None and "guidance" in output.rules and chain.guidance is None:
                rule = output.rules["guidance"]
                chain.guidance = self.ask(chain, lambda n=node, r=rule: self.values.rule(n, r))  # type: ignore[misc]

    def _in_order(self, found: Iterable[str]) -> list[Node]:
        wanted = set(found)
        return [node for key, node in self.graph.nodes.items() if key in wanted]

    # --- what becomes of it

    def _ends(self, chains: list[Chain]) -> None:
        """The decoder and the ends of each chain: the last decoder of its last sampler."""
        of = {
            step.node.id: (chain, place)
            for chain in chains
            for place, step in enumerate(chain.steps)
        }
        best: dict[int, int] = {}
        for node in self.running.values():
            kind = self.known.kind(node.type)
            if kind is None:
                continue
            if kind.decode is not None:
                place = self._sampler_of(node, kind.decode.latent, of)
                if place is not None and place[1] >= best.get(id(place[0]), -1):
                    place[0].decoder = node
                    best[id(place[0])] = place[1]
                    self._vae(place[0], node)
            if kind.saves is not None:
                place = self._sampler_of(node, kind.saves.from_, of)
                if place is not None:
                    place[0].ends.append(node)

    def _vae(self, chain: Chain, decoder: Node) -> None:
        """The decoder's own VAE among what the chain loads."""
        for link in self._path(decoder, "vae"):
            node = self.values.node(link)
            kind = self.known.kind(node.type)
            if kind is not None and kind.loads and node not in chain.loaders:
                chain.loaders.append(node)

    def _sampler_of(
        self, node: Node, name: str, of: dict[str, tuple[Chain, int]]
    ) -> tuple[Chain, int] | None:
        for link in self._path(node, name):
            if link.node in of:
                return of[link.node]
        return None


def _place(entry: tuple[int, int, Step]) -> tuple[int, int]:
    return entry[:2]


def _has_picture(node: Node) -> bool:
    """Whether an edit node has a picture to edit: some take none and then make one from text."""
    kinds = ("image", "pixels", "latent", "images", "vae", "video", "file", "samples", "mask")
    return not node.links or any(name.startswith(kinds) for name in (*node.links, *node.values))
