"""A schema registry by HTTP that gives the answers of a test: also those of a real one on a bad day."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NOT_FOUND = 404, {"error_code": 40403, "message": "Schema not found"}


@dataclass
class Answers:
    """What it says, by path: a status and JSON; else that it does not know.

    :param asked: the paths, in the order of the questions.
    """

    by_path: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def to(self, path: str) -> tuple[int, Any]:
        """Return the answer to a question."""
        self.asked.append(path)
        return self.by_path.get(path, NOT_FOUND)

    def ids(self) -> list[int]:
        """Return the ids that were asked for."""
        return [int(path.rpartition("/")[2]) for path in self.asked if path.startswith("/schemas/ids/")]


@contextmanager
def answering() -> Iterator[Answers]:
    """Let it run while the body does."""
    made = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer()

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self) -> None:
            status, said = made.to(self.path.partition("?")[0])
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join(10)
