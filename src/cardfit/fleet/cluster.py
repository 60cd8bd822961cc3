"""A Ray cluster: joined or started within seconds, its nodes, and which of them may work.

In: an address. Out: a `Cluster`. A node whose Python, cardfit or libraries are not those of the driver is left out by
name, and the rest goes on. Nothing is installed or changed on a node.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from cardfit.errors import BadRequest, CardfitError, MissingExtra, ServerFailed
from cardfit.measure.here import here
from cardfit.records.models import Reason
from cardfit.units import MIB

LOCAL = "local"
CARD = "card:"
"""A node says which cards it has as a Ray resource: ``ray start --resources='{"card:rtx-4090": 4}'``."""
CONNECT_S = 5.0
_LOOK_S = 1.0  # between two looks at the nodes
_ANSWER_S = 60.0  # for a node to start a worker and say its versions
_STORE_BYTES = 256 * MIB  # of a local cluster, for what comes back from runs
# The first bytes of HTTP/2, which Ray's servers speak, and the kind of frame that a server must answer with first.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_SETTINGS, _FRAME_BYTES = 4, 9

Versions = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Needs:
    """What one piece of work asks of a node: processors, GPUs, and a card by its id."""

    cpus: float = 1.0
    gpus: float = 0.0
    card: str | None = None

    def resources(self) -> dict[str, float]:
        """As Ray names them."""
        found = {"CPU": self.cpus, "GPU": self.gpus}
        if self.card is not None:
            found[f"{CARD}{self.card}"] = 1.0
        return {name: amount for name, amount in found.items() if amount}

    def said(self) -> str:
        """In words.

        >>> Needs(gpus=1, card="rtx-4090").said()
        '1 CPU, 1 GPU, 1 card:rtx-4090'
        """
        return ", ".join(f"{amount:g} {name}" for name, amount in self.resources().items())


@dataclass(frozen=True, slots=True)
class Node:
    """A living node: its id, a name for people, and its resources in all."""

    id: str
    name: str
    resources: Mapping[str, float]

    def room(self, needs: Needs) -> int:
        """How many pieces with these ``needs`` it can hold at once."""
        return min(
            int(self.resources.get(name, 0.0) / amount)
            for name, amount in needs.resources().items()
        )


@dataclass
class Cluster:
    """A joined cluster. ``expected`` are the versions that a node must have, ``note`` is called as notes are made."""

    ray: Any
    expected: dict[str, str] = field(default_factory=dict)
    note: Callable[[Reason], None] = lambda _note: None
    notes: list[Reason] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # id to name
    _nodes: dict[str, Node] = field(default_factory=dict)
    _looked: float = float("-inf")

    def nodes(self) -> tuple[Node, ...]:
        """The living nodes that may work; looked at anew once a second."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_S:
            self._looked = now
            found = {
                each["NodeID"]: Node(each["NodeID"], _name(each), each["Resources"])
                for each in self.ray.nodes()
                if each["Alive"]
            }
            for gone in self._nodes.keys() - found.keys():
                self.say("fleet-node-lost", node=self._nodes[gone].name)
            self._nodes = found
        return tuple(node for node in self._nodes.values() if node.id not in self.refused)

    def room(self, needs: Needs) -> int:
        """How many pieces with these ``needs`` can run at once."""
        return sum(node.room(needs) for node in self.nodes())

    def cards(self) -> tuple[str, ...]:
        """The ids of the cards that nodes say they have."""
        names = {name for node in self.nodes() for name in node.resources}
        return tuple(sorted(name.removeprefix(CARD) for name in names if name.startswith(CARD)))

    def offered(self) -> str:
        """What the nodes that may work have in all, in words; a dash where there is nothing."""
        total: Counter[str] = Counter()
        for node in self.nodes():
            total.update(
                {
                    name: round(amount)
                    for name, amount in node.resources.items()
                    if name in ("CPU", "GPU") or name.startswith(CARD)
                }
            )
        return ", ".join(f"{count} {name}" for name, count in sorted(total.items()) if count) or "-"

    def say(self, code: str, **args: Any) -> None:
        """Keep a note, and hand it on."""
        reason = Reason.of(code, **args)
        self.notes.append(reason)
        self.note(reason)

    def where(self) -> dict[str, str] | None:
        """Ray's label selector for the nodes that may work; None where all may."""
        return {"ray.io/node-id": f"!in({','.join(self.refused)})"} if self.refused else None

    def refuse(self, node_id: str, versions: Versions) -> bool:
        """Leave a node out where ``versions`` are not the expected ones; whether it was."""
        different = [name for name, here in self.expected.items() if versions.get(name) != here]
        if different and node_id not in self.refused:
            self.refused[node_id] = name = self._called(node_id)
            for package in different:
                there = versions.get(package) or "-"
                args = {"package": package, "there": there, "here": self.expected[package]}
                self.say("fleet-node-differs", node=name, **args)
        return bool(different)

    def check(self) -> None:
        """Ask every node for its versions, and leave out those that differ. Raises ServerFailed where none is left."""
        asked = self.ray.remote(versions_found())
        affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        options = {"num_cpus": 0, "max_retries": 0}
        nodes = [node for node in self.nodes() if node.resources.get("CPU")]
        waiting = {
            asked.options(
                **options, scheduling_strategy=affinity(node.id, soft=False)
            ).remote(): node
            for node in nodes
        }
        ready, _ = self.ray.wait(list(waiting), num_returns=len(waiting), timeout=_ANSWER_S)
        answers: dict[str, Versions] = {}
        for each in ready:
            with suppress(self.ray.exceptions.RayError):  # the node has gone meanwhile
                answers[waiting[each].id] = self.ray.get(each)
        mine = versions_found()()
        for name in mine:
            if (usual := mine[name] or _most_common(name, answers.values())) is not None:
                self.expected[name] = usual
        for node_id, versions in answers.items():
            self.refuse(node_id, versions)
        if not any(node.resources.get("CPU") for node in self.nodes()):
            raise ServerFailed("fleet-no-nodes", count=len(nodes))

    def _called(self, node_id: str) -> str:
        found = self._nodes.get(node_id)
        return node_id[:6] if found is None else found.name


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})"


def _most_common(name: str, answers: Any) -> str | None:
    counts = Counter(each[name] for each in answers if each.get(name) is not None)
    return max(counts, key=lambda each: counts[each]) if counts else None


def versions_found() -> Callable[[], dict[str, str | None]]:
    """A function that a node can run without cardfit: it travels whole, since it has no name to be found by."""

    def found() -> dict[str, str | None]:
        import platform
        from contextlib import suppress
        from importlib import import_module, metadata

        versions: dict[str, str | None] = {
            "python": ".".join(platform.python_version_tuple()[:2]),
            "cardfit": None,
        }
        with suppress(ImportError):
            versions["cardfit"] = import_module("cardfit").__version__
        for name in ("torch", "diffusers", "transformers"):
            try:  # the build for another card or none is the same version
                versions[name] = metadata.version(name).partition("+")[0]
            except metadata.PackageNotFoundError:
                versions[name] = None
        return versions

    return found


@contextmanager
def joined(
    address: str,
    *,
    resources: Mapping[str, float] | None = None,
    note: Callable[[Reason], None] = lambda _note: None,
) -> Iterator[Cluster]:
    """The cluster at ``address``, left afterwards; ``local`` starts one of this machine, which ends with it.

    ``resources`` are what the local one says it has beside this machine's processors and cards. Raises BadRequest for
    what is no address, ServerFailed where no cluster answers within seconds or no node may work, MissingExtra.
    """
    if address not in (LOCAL, "auto"):
        _answers(*_host_and_port(address))
    ray = _ray()
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if address == LOCAL:
            ray.init(address=LOCAL, **quiet, **_local(resources or {}))
        else:
            ray.init(address=address, **quiet)
    except (
        Exception,
        SystemExit,
    ) as error:  # Ray leaves with an exit where its own server does not answer
        raise ServerFailed("fleet-not-joined", address=address, why=_first_line(error)) from error
    try:
        cluster = Cluster(ray, note=note)
        if address != LOCAL:  # one interpreter, one set of versions
            cluster.check()
        yield cluster
    finally:
        ray.shutdown()


def _ray() -> Any:
    # read when Ray is loaded: nothing is reported to anybody
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # the empty list of GPUs for work that asked for none, which hides them from it
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    try:
        ray = import_module("ray")
    except ModuleNotFoundError as missing:
        raise MissingExtra("fleet-needs-ray", package=missing.name or "ray") from missing
    if ray.is_initialized():
        raise BadRequest("fleet-joined-already")
    # Ray prints what nodes say of their own end to stdout, where answers go; `Cluster.nodes` says it
    worker: Any = import_module("ray._private.worker")
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_args, **_more: None
    return ray


def _local(resources: Mapping[str, float]) -> dict[str, Any]:
    """How this machine is started as a cluster of one node."""
    # Ray would end the worker of a run that fills the memory; the run's own child is to be ended, which is an outcome
    os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    has = dict(resources)
    with suppress(CardfitError):
        card = here().card
        if card is not None:
            has.setdefault(f"{CARD}{card.id}", 1.0)
    return {
        "num_cpus": os.cpu_count(),
        "resources": has,
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
    }


def _host_and_port(address: str) -> tuple[str, int]:
    """Raises BadRequest for what is neither."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadRequest("fleet-bad-address", asked=address)
    return host.strip("[]"), int(port)


def _answers(host: str, port: int) -> None:
    """Raise ServerFailed where nothing there speaks as Ray does: Ray itself would take more than a minute to say so."""
    address = f"{host}:{port}"
    try:
        with closing(socket.create_connection((host, port), timeout=CONNECT_S)) as line:
            line.settimeout(CONNECT_S)
            line.sendall(_HELLO)
            frame = b""
            while len(frame) < _FRAME_BYTES and (more := line.recv(_FRAME_BYTES - len(frame))):
                frame += more
    except OSError as error:
        why = error.strerror or str(error)
        raise ServerFailed("fleet-not-reached", address=address, why=why) from error
    if len(frame) < _FRAME_BYTES or frame[3] != _SETTINGS:
        raise ServerFailed("fleet-not-ray", address=address)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
