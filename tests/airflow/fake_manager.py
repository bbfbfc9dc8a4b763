"""A resource manager of YARN that says what a test tells it, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

APP_ID = "application_1795240018597_0001"


@dataclass
class FakeManager:
    """What it says, and what was asked of it.

    :param apps: by id, what the REST API says of an application.
    :param broken: answer with an error instead.
    :param redirects_to: send whoever asks there instead.
    :param ends_after: let an application succeed when it was asked for so often.
    """

    url: str = ""
    apps: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: bool = False
    redirects_to: str = ""
    ends_after: int | None = None
    asked: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def run(self, app_id: str = APP_ID, *tags: str) -> None:
        """Let an application run."""
        self.apps[app_id] = {
            "id": app_id,
            "state": "RUNNING",
            "finalStatus": "UNDEFINED",
            "applicationTags": ",".join(tags),
            "trackingUrl": f"http://manager/proxy/{app_id}/",
        }

    def end(self, state: str, final_status: str, app_id: str = APP_ID) -> None:
        """Let an application end."""
        self.apps[app_id] |= {"state": state, "finalStatus": final_status}

    def answer(self, method: str, path: str) -> tuple[int, object]:
        """Return the status and the body of an answer."""
        self.asked.append(f"{method} {path}")
        if self.broken:
            return 503, "standby"
        if path.endswith("/cluster/info"):
            return 200, {"clusterInfo": {"hadoopVersion": "3.4.2", "state": "STARTED"}}
        parts = urlparse(path)
        words = parts.path.removeprefix("/ws/v1/cluster/apps").strip("/").split("/")
        if not words[0]:
            query = parse_qs(parts.query)
            tag, states = query.get("applicationTags", [""])[0], query["states"][0].split(",")
            found = [
                app
                for app in self.apps.values()
                if tag in ("", *app["applicationTags"].split(",")) and app["state"] in states
            ]
            return 200, {"apps": {"app": found}} if found else {"apps": None}
        if words[0] not in self.apps:
            return 404, {"RemoteException": {}}
        if self.ends_after == sum(words[0] in asked for asked in self.asked):
            self.end("FINISHED", "SUCCEEDED", words[0])
        if method == "PUT":
            self.killed.append(words[0])
            self.end("KILLED", "KILLED", words[0])
        return 200, {"app": self.apps[words[0]]}


@contextmanager
def fake_manager() -> Iterator[FakeManager]:
    """Run one while the body runs."""
    from airflow_provider_sinks.triggers.shared_client import forget_clients

    forget_clients()
    manager = FakeManager()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer("PUT")

        def do_POST(self) -> None:
            """Take what the ``spark-submit`` of a test submits."""
            tags = self.rfile.read(int(self.headers["Content-Length"])).decode()
            manager.run(f"application_1_{len(manager.apps) + 1:04d}", *tags.split(","))
            self.send_response(204)
            self.end_headers()

        def _answer(self, method: str) -> None:
            status, body = manager.answer(method, self.path)
            text = json.dumps(body).encode()
            self.send_response(302 if manager.redirects_to else status)
            if manager.redirects_to:
                self.send_header("Location", manager.redirects_to)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        manager.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield manager
        finally:
            server.shutdown()
