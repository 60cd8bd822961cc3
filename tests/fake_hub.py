"""A repo of the hub on a local server, by the hub's own protocol; it counts what it sends."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPO, COMMIT = "somebody/tiny-sd", "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """A repo on a local server; ``asked`` are the files that somebody read, ``sent`` the bytes of each."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.sent: Counter[str] = Counter()
        hub = self
        names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        info = {
            "id": REPO,
            "sha": COMMIT,
            "createdAt": "2025-03-01T00:00:00.000Z",
            "cardData": {"license": "apache-2.0"},
            "siblings": [{"rfilename": name} for name in names],
        }
        tree = [
            {"type": "file", "path": n, "size": (folder / n).stat().st_size, "oid": COMMIT}
            for n in names
        ]

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self, *, body: bool) -> None:
                path = self.path.partition("?")[0]
                content, code = b"{}", 404
                headers = {"X-Error-Code": "RepoNotFound"}
                name = ""
                if path.startswith(f"/api/models/{REPO}"):
                    said = tree if path.startswith(f"/api/models/{REPO}/tree/") else info
                    content, code, headers = json.dumps(said).encode(), 200, {}
                elif path.startswith(f"/{REPO}/resolve/"):
                    name = path.removeprefix(f"/{REPO}/resolve/").partition("/")[2]
                    content, code, headers = self.part(folder / name)
                    if body:
                        hub.asked.append(name)
                self.send_response(code)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if body:
                    hub.sent[name] += len(content)
                    self.wfile.write(content)

            def part(self, file: Path) -> tuple[bytes, int, dict[str, str]]:
                asked = self.headers.get("Range", "").removeprefix("bytes=")
                size, headers = file.stat().st_size, {"X-Repo-Commit": COMMIT}
                if not asked:
                    content = file.read_bytes()
                    etag = hashlib.sha256(content).hexdigest()
                    return content, 200, {**headers, "ETag": f'"{etag}"'}
                first, last = (int(each) for each in asked.split("-"))
                if first >= size:
                    return b"", 416, headers
                with file.open("rb") as stream:
                    stream.seek(first)
                    content = stream.read(last + 1 - first)
                headers["Content-Range"] = f"bytes {first}-{first + len(content) - 1}/{size}"
                return content, 206, headers

            def do_GET(self) -> None:
                self.reply(body=True)

            def do_HEAD(self) -> None:
                self.reply(body=False)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
