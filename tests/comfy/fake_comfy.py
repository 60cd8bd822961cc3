"""A small server that speaks ComfyUI's endpoints: a queue, a websocket, a history, and nodes that only wait.

A node of class ``Boom`` fails with the text in its input ``text``; ``Wait`` takes ``seconds``; a sampler has ``steps``.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import uuid
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, RedirectResponse, Response

GIB = 1024**3
KNOWN = {
    "CheckpointLoaderSimple",
    "CLIPTextEncode",
    "KSampler",
    "VAEDecode",
    "SaveImage",
    "Boom",
    "Wait",
}


class FakeComfy:
    def __init__(self, host: str = "127.0.0.1") -> None:
        self.sockets: dict[str, WebSocket] = {}
        self.running: str | None = None
        self.pending: list[str] = []
        self.history: dict[str, Any] = {}
        self.stopped: set[str] = set()
        self.calls: list[str] = []
        self.used = 2 * GIB
        self.cached: list[str] = []
        self.redirect: str | None = None
        self.hold = False  # queue, and do not begin
        self.forget = False  # lose the queue when the websocket is closed, as a restart does
        self.drop_after: int | None = None  # messages after which the websocket is closed once
        self.stats: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._socket = socket.socket()
        self._socket.bind((host, 0))
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._app(), log_level="error", ws="websockets-sansio", lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FakeComfy:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(5)
        self._socket.close()

    def _app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/system_stats")
        def system_stats() -> Any:
            if self.redirect:
                return RedirectResponse(self.redirect)
            return self.stats if self.stats is not None else self._stats()

        @app.post("/prompt")
        async def prompt(request: Request) -> Any:
            body = await request.json()
            errors = {
                name: {
                    "class_type": node["class_type"],
                    "errors": [{"message": "Value not in list", "details": "ckpt_name: 'x'"}],
                }
                for name, node in body["prompt"].items()
                if node["class_type"] not in KNOWN
            }
            if errors:
                error = {"type": "prompt_outputs_failed_validation", "message": "failed validation"}
                return JSONResponse({"error": error, "node_errors": errors}, 400)
            prompt_id = str(uuid.uuid4())
            self.pending.append(prompt_id)
            if not self.hold:
                task = asyncio.create_task(self._run(prompt_id, body["prompt"], body["client_id"]))
                self._tasks.add(task)
            return {"prompt_id": prompt_id, "number": 1, "node_errors": {}}

        @app.get("/queue")
        def queue() -> Any:
            running = [[0, self.running, {}, {}, []]] if self.running else []
            return {
                "queue_running": running,
                "queue_pending": [[1, each, {}, {}, []] for each in self.pending],
            }

        @app.post("/queue")
        async def delete(request: Request) -> Any:
            for each in (await request.json()).get("delete", ()):
                self.calls.append("delete")
                self.pending.remove(each)
            return Response()

        @app.post("/interrupt")
        async def interrupt(request: Request) -> Any:
            self.calls.append("interrupt")
            self.stopped.add((await request.json())["prompt_id"])
            return Response()

        @app.get("/history/{prompt_id}")
        def history(prompt_id: str) -> Any:
            found = self.history.get(prompt_id)
            return {prompt_id: found} if found else {}

        @app.get("/view")
        def view(filename: str) -> Any:
            return Response(filename.encode())

        @app.get("/{path:path}")
        def other(path: str) -> Any:
            return Response(status_code=404)

        @app.websocket("/ws")
        async def ws(websocket: WebSocket, clientId: str) -> None:  # noqa: N803
            await websocket.accept()
            self.sockets[clientId] = websocket
            await websocket.send_text(json.dumps({"type": "status", "data": {"sid": clientId}}))
            try:
                while True:
                    await websocket.receive_text()
            except WebSocketDisconnect:
                if self.sockets.get(clientId) is websocket:
                    del self.sockets[clientId]

        return app

    def _stats(self) -> dict[str, Any]:
        total = 25_250_627_584  # what CUDA says of a 4090
        return {
            "system": {
                "os": "posix",
                "ram_total": 64 * GIB,
                "ram_free": 40 * GIB,
                "comfyui_version": "0.3.76",
                "python_version": "3.12.3 (main)",
                "pytorch_version": "2.9.1+cu130",
            },
            "devices": [
                {
                    "name": "cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync",
                    "type": "cuda",
                    "index": 0,
                    "vram_total": total,
                    "vram_free": total - self.used,
                    "torch_vram_total": self.used // 2,
                    "torch_vram_free": self.used // 4,
                }
            ],
        }

    async def _run(self, prompt_id: str, workflow: dict[str, Any], client: str) -> None:
        sent = 0

        async def send(kind: str, **data: Any) -> None:
            nonlocal sent
            line = self.sockets.get(client)
            if line is None:
                return
            sent += 1
            await line.send_text(
                json.dumps({"type": kind, "data": {**data, "prompt_id": prompt_id}})
            )
            if sent == self.drop_after:
                del self.sockets[client]
                await line.close()
                if self.forget:
                    self.running = None
                    raise asyncio.CancelledError

        self.pending.remove(prompt_id)
        self.running = prompt_id
        outputs: dict[str, Any] = {}
        ended: tuple[str, dict[str, Any]] = ("execution_success", {})
        await send("execution_start")
        await send("execution_cached", nodes=self.cached)
        for name, node in workflow.items():
            if name in self.cached:
                continue
            await send("executing", node=name, display_node=name)
            self.used += GIB
            failed = await self._node(prompt_id, name, node, send)
            if failed is not None:
                ended = failed
                break
            if node["class_type"] == "SaveImage":
                files = [{"filename": "ComfyUI_00001_.png", "subfolder": "", "type": "output"}]
                outputs[name] = {"images": files}
                await send("executed", node=name, output=outputs[name])
        messages = [["execution_start", {"prompt_id": prompt_id}]]
        messages.append([ended[0], {**ended[1], "prompt_id": prompt_id}])
        good = ended[0] == "execution_success"
        status = {
            "status_str": "success" if good else "error",
            "completed": good,
            "messages": messages,
        }
        self.history[prompt_id] = {"outputs": outputs, "status": status}
        self.running = None
        await send(ended[0], **ended[1])
        await send("executing", node=None)

    async def _node(self, prompt_id: str, name: str, node: dict[str, Any], send: Any) -> Any:
        line = next(iter(self.sockets.values()), None)
        if line is not None:
            await line.send_bytes(b"\0\0\0\1" + b"\xff" * 1000)  # a preview
        where = {"node_id": name, "node_type": node["class_type"], "executed": []}
        for step in range(node["inputs"].get("steps", 0)):
            await asyncio.sleep(0.02)
            await send("progress", node=name, value=step + 1, max=node["inputs"]["steps"])
            if prompt_id in self.stopped:
                return "execution_interrupted", where
        until = time.monotonic() + node["inputs"].get("seconds", 0.02)
        while time.monotonic() < until:
            await asyncio.sleep(0.01)
            if prompt_id in self.stopped:
                return "execution_interrupted", where
        if node["class_type"] == "Boom":
            return "execution_error", {
                **where,
                "exception_type": node["inputs"].get("kind", "torch.OutOfMemoryError"),
                "exception_message": node["inputs"]["text"],
                "traceback": ['  File "execution.py", line 1, in execute\n'],
            }
        return None
