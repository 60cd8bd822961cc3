"""Run one prompt on a ComfyUI server and watch it: queue, follow, stop.

In: a server's address, a workflow in the API format. Out: `Seen`: when each node began and ended, the sampler's steps,
what was cached, the outputs, and how it ended. Moments are seconds from the start of the prompt on the server. A
connection that breaks is made anew; what the history says stands where messages were missed.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from cardfit.comfy import http
from cardfit.comfy.lists import read_json
from cardfit.comfy.shown import shown
from cardfit.errors import BadFile, BadRequest, MissingExtra, ServerFailed
from cardfit.messages import say
from cardfit.units import MIB

MAX_MESSAGE_BYTES = 64 * MIB  # previews come through the same socket
MAX_NODES = 20_000
_QUIET_S = 1.0  # between looks at the clock while the server says nothing
_ASK_EVERY = 15  # quiet spells after which the history is asked
_TRIES = 5
EndKind = Literal["ok", "error", "interrupted", "timeout", "lost", "forgotten"]
Tell = Callable[[str, float | None], None]
Workflow = dict[str, Any]


@dataclass(slots=True)
class Span:
    """One node's turn; ``ended_s`` is None while it runs."""

    node: str
    began_s: float
    ended_s: float | None = None


@dataclass(slots=True)
class End:
    """How the prompt ended; of an error, the node and what it said."""

    kind: EndKind
    node: str | None = None
    error: str = ""
    text: str = ""
    log: str = ""


@dataclass(slots=True)
class Seen:
    """What was seen of a prompt."""

    prompt_id: str
    begin: float  # monotonic seconds
    spans: list[Span] = field(default_factory=list)
    steps_s: list[float] = field(default_factory=list)
    cached: tuple[str, ...] = ()
    outputs: list[dict[str, str]] = field(default_factory=list)
    breaks: int = 0
    seconds: float = 0.0
    end: End | None = None
    _step: tuple[str, float, float] | None = None  # node, step, when


def read_api_file(path: Path) -> Workflow:
    """The workflow in the API format at ``path``. Raises BadFile, also for the format of the editor."""
    found = read_json(path)
    if isinstance(found, dict) and isinstance(found.get("nodes"), list):
        raise BadFile("comfy-file-not-api", path=shown(path))
    if not isinstance(found, dict) or not found or len(found) > MAX_NODES:
        raise BadFile("comfy-file-not-workflow", path=shown(path))
    for name, node in found.items():
        good = isinstance(node, dict) and isinstance(node.get("inputs"), dict)
        if not good or not isinstance(node.get("class_type"), str):
            raise BadFile("comfy-file-bad-node", path=shown(path), node=shown(name))
    return found


def run(
    address: http.Address,
    workflow: Workflow,
    *,
    timeout_s: float | None = None,
    tell: Tell | None = None,
) -> Seen:
    """Queue ``workflow`` and follow it to its end; Ctrl-C and ``timeout_s`` stop it on the server too.

    Raises BadRequest when the server refuses the workflow and ServerFailed when it cannot be reached before that;
    whatever happens later is in what is returned.
    """
    client = secrets.token_hex(16)
    with ExitStack() as open_now:
        line = open_now.enter_context(_connected(address, client))
        seen = Seen(_queue(address, workflow, client), time.monotonic())
        follower = _Follower(address, workflow, seen, tell)
        try:
            while seen.end is None:
                line = follower.step(line, client, open_now, timeout_s)
        except KeyboardInterrupt:
            seen.end = End("interrupted")
            stop(address, seen.prompt_id)
    follower.close()
    return seen


def stop(address: http.Address, prompt_id: str) -> None:
    """Take the prompt from the queue, or interrupt it where it is what runs. A server that is gone is no error."""
    with suppress(ServerFailed):
        if queued_on(address).get(prompt_id) == "queue_running":
            http.post_json(address, "/interrupt", {"prompt_id": prompt_id})
        else:
            http.post_json(address, "/queue", {"delete": [prompt_id]})


def queued_on(address: http.Address) -> dict[str, str]:
    """The prompts that run or wait: by their ids, in which of the server's two lists. Raises ServerFailed."""
    queue = http.get_json(address, "/queue")
    found = {}
    for name in ("queue_pending", "queue_running"):
        entries = queue.get(name) if isinstance(queue, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, list) and len(entry) > 1:
                found[str(entry[1])] = name
    return found


class _Follower:
    """Takes the server's messages one by one."""

    def __init__(
        self, address: http.Address, workflow: Workflow, seen: Seen, tell: Tell | None
    ) -> None:
        self.address, self.workflow, self.seen, self.tell = address, workflow, seen, tell
        self.quiet = self.absent = 0

    def step(self, line: Any, client: str, open_now: ExitStack, timeout_s: float | None) -> Any:
        """Take one message, or notice that none came. Returns the connection to go on with."""
        seen = self.seen
        if timeout_s is not None and time.monotonic() - seen.begin > timeout_s:
            seen.end = End("timeout")
            stop(self.address, seen.prompt_id)
            return line
        closed = _websockets().exceptions.ConnectionClosed
        try:
            message = line.recv(timeout=_QUIET_S)
        except TimeoutError:
            self.quiet += 1
            if self.quiet % _ASK_EVERY == 0:
                self.ask()
            return line
        except closed:
            return self.again(client, open_now) or line
        self.quiet = 0
        if isinstance(message, str):
            self.take(message)
        return line

    def again(self, client: str, open_now: ExitStack) -> Any:
        """A new connection after one broke; None, and the end, where the server is gone."""
        self.seen.breaks += 1
        why = ""
        for wait in range(_TRIES):
            self.ask()
            if self.seen.end is not None:
                return None
            try:
                return open_now.enter_context(_connected(self.address, client))
            except ServerFailed as error:
                why = str(error)
            time.sleep(wait)
        self.seen.end = End("lost", node=self.now, text=why)
        return None

    def ask(self) -> None:
        """Let the history say whether the prompt has ended."""
        with suppress(ServerFailed):
            entry = history(self.address, self.seen.prompt_id)
            status = entry.get("status")
            messages = status.get("messages") if isinstance(status, dict) else None
            for each in messages if isinstance(messages, list) else ():
                if isinstance(each, list) and len(each) == 2 and str(each[0]) in _ENDS:
                    self.hear(str(each[0]), each[1])
            if entry and self.seen.end is None:
                self.seen.end = End("ok")
            elif not entry and self.seen.prompt_id not in queued_on(self.address):
                self.absent += 1  # twice: it may have been on its way from one to the other
                if self.absent > 1:
                    self.seen.end = End("forgotten", node=self.now)

    @property
    def now(self) -> str | None:
        """The node that runs."""
        spans = self.seen.spans
        return spans[-1].node if spans and spans[-1].ended_s is None else None

    def take(self, text: str) -> None:
        """One message of the server; what is none is left aside."""
        try:
            message = http.parsed(text)
        except (ValueError, RecursionError):
            return
        if isinstance(message, dict) and isinstance(message.get("type"), str):
            self.hear(message["type"], message.get("data"))

    def hear(self, kind: str, data: Any) -> None:
        """One message by its kind, if it is about our prompt."""
        if not isinstance(data, dict) or data.get("prompt_id") not in (None, self.seen.prompt_id):
            return
        heard = _HEARD.get(kind)
        if heard is not None and self.seen.end is None:
            heard(self, data)

    def started(self, data: dict[str, Any]) -> None:
        self.seen.begin = time.monotonic()

    def cached(self, data: dict[str, Any]) -> None:
        nodes = data.get("nodes")
        self.seen.cached = tuple(str(node) for node in nodes) if isinstance(nodes, list) else ()

    def executing(self, data: dict[str, Any]) -> None:
        self.turn_over()
        node = data.get("node")
        if node is None:
            self.seen.end = End("ok")
        elif len(self.seen.spans) < MAX_NODES:
            self.seen.spans.append(Span(str(node), self.at))
            self.say(str(node), None)

    def progress(self, data: dict[str, Any]) -> None:
        value, most = data.get("value"), data.get("max")
        if not isinstance(value, (int, float)) or not isinstance(most, (int, float)) or most <= 0:
            return
        node, now = str(data.get("node") or self.now or ""), self.at
        before = self.seen._step
        if before is not None and before[0] == node and value == before[1] + 1:
            self.seen.steps_s.append(now - before[2])
        self.seen._step = (node, value, now)
        self.say(node, min(1.0, max(0.0, value / most)))

    def executed(self, data: dict[str, Any]) -> None:
        self.seen.outputs += outputs_of(data.get("output"))

    def succeeded(self, data: dict[str, Any]) -> None:
        self.seen.end = End("ok")

    def interrupted(self, data: dict[str, Any]) -> None:
        self.seen.end = End("interrupted", node=_text(data.get("node_id")))

    def failed(self, data: dict[str, Any]) -> None:
        trace = data.get("traceback")
        self.seen.end = End(
            "error",
            node=_text(data.get("node_id")) or self.now,
            error=shown(data.get("exception_type") or "Exception"),
            text=" ".join(str(data.get("exception_message") or "").split()),
            log="".join(str(each) for each in trace) if isinstance(trace, list) else "",
        )

    @property
    def at(self) -> float:
        """Seconds since the prompt began."""
        return time.monotonic() - self.seen.begin

    def turn_over(self) -> None:
        """The node that ran has ended."""
        if self.now is not None:
            self.seen.spans[-1].ended_s = self.at

    def close(self) -> None:
        """The prompt has ended."""
        self.seen.seconds = self.at
        self.turn_over()

    def say(self, node: str, share: float | None) -> None:
        if self.tell is not None:
            kind = shown(class_of(self.workflow, node), 40).replace("[", "(")
            self.tell(say("comfy-node-runs", {"node": shown(node, 20), "kind": kind}), share)


_Heard = Callable[[_Follower, dict[str, Any]], None]
_ENDS: dict[str, _Heard] = {
    "execution_success": _Follower.succeeded,
    "execution_error": _Follower.failed,
    "execution_interrupted": _Follower.interrupted,
}
_HEARD: dict[str, _Heard] = {
    "execution_start": _Follower.started,
    "execution_cached": _Follower.cached,
    "executing": _Follower.executing,
    "progress": _Follower.progress,
    "executed": _Follower.executed,
    **_ENDS,
}


def class_of(workflow: Workflow, node: str) -> str:
    """The class of a node, also of one that another made while it ran (``5.0.3``, ``5:3``); ``?`` for none."""
    for name in (node, node.partition(".")[0], node.partition(":")[0]):
        if name in workflow:
            return str(workflow[name]["class_type"])
    return "?"


def outputs_of(output: Any) -> list[dict[str, str]]:
    """The files that a node says it wrote: name, sub-folder and kind of each."""
    found = []
    for files in output.values() if isinstance(output, dict) else ():
        for each in files if isinstance(files, list) else ():
            if isinstance(each, dict) and isinstance(each.get("filename"), str):
                found.append({k: str(each.get(k, "")) for k in ("filename", "subfolder", "type")})
    return found


def history(address: http.Address, prompt_id: str) -> dict[str, Any]:
    """What the server keeps of a prompt that has ended; empty while it has not. Raises ServerFailed."""
    found = http.get_json(address, f"/history/{prompt_id}")
    entry = found.get(prompt_id) if isinstance(found, dict) else None
    return entry if isinstance(entry, dict) else {}


def _queue(address: http.Address, workflow: Workflow, client: str) -> str:
    try:
        answer = http.post_json(address, "/prompt", {"prompt": workflow, "client_id": client})
    except http.Refused as error:
        raise BadRequest("comfy-prompt-refused", why=_refusal(error.body)) from error
    prompt_id = answer.get("prompt_id") if isinstance(answer, dict) else None
    if not isinstance(prompt_id, str) or not prompt_id.replace("-", "").isalnum():
        raise ServerFailed("comfy-server-not-json", path="/prompt")
    return prompt_id


def _refusal(body: Any) -> str:
    """The server's reasons, node by node."""
    found = []
    nodes = body.get("node_errors") if isinstance(body, dict) else None
    for name, each in nodes.items() if isinstance(nodes, dict) else ():
        errors = each.get("errors") if isinstance(each, dict) else None
        for error in errors if isinstance(errors, list) else ():
            if isinstance(error, dict):
                text = f"{error.get('message', '')} {error.get('details', '')}"
                found.append(f"{name} {each.get('class_type', '')}: {text}")
    error = body.get("error") if isinstance(body, dict) else None
    if not found and isinstance(error, dict):
        found.append(f"{error.get('message', '')} {error.get('details', '')}")
    return shown("; ".join(" ".join(each.split()) for each in found) or "?", 600)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _websockets() -> ModuleType:
    try:
        import websockets.exceptions
        import websockets.sync.client
    except ModuleNotFoundError as missing:
        raise MissingExtra("comfy-needs-extra", package="websockets") from missing
    return websockets


@contextmanager
def _connected(address: http.Address, client: str) -> Iterator[Any]:
    """The server's websocket. Raises ServerFailed. The socket is made here: then no redirect can be followed."""
    library = _websockets()
    try:
        made = socket.create_connection((address.host, address.port), http.TIMEOUT_S)
    except OSError as error:
        raise ServerFailed("comfy-server-away", path="/ws", why=shown(error)) from error
    try:
        connecting = library.sync.client.connect(
            address.socket_url("/ws", clientId=client),
            sock=made,
            proxy=None,
            open_timeout=http.TIMEOUT_S,
            close_timeout=2,
            ping_interval=None,  # a node can hold the server for minutes
            max_size=MAX_MESSAGE_BYTES,
        )
        line = connecting.__enter__()
    except (OSError, ValueError, library.exceptions.WebSocketException) as error:
        made.close()
        raise ServerFailed("comfy-server-away", path="/ws", why=shown(error)) from error
    try:
        yield line
    finally:
        connecting.__exit__(None, None, None)
