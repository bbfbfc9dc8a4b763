"""A gate in front of a real registry: it lets in who knows the password or the token, and may be slow."""

from __future__ import annotations

import base64
import http.server
import threading
import time
import urllib.error
import urllib.request
from typing import Self

LOGIN, PASSWORD, TOKEN = "sinks", "geheim:9", "t0ken"
_ALLOWED = {f"Basic {base64.b64encode(f'{LOGIN}:{PASSWORD}'.encode()).decode()}", f"Bearer {TOKEN}"}


class Gate:
    """Passes requests on to a registry.

    :param behind: the address of the registry.
    """

    def __init__(self, behind: str) -> None:
        self.delay_seconds = 0.0
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._pass_on(None)

            def do_POST(self) -> None:
                self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

            def _pass_on(self, body: bytes | None) -> None:
                time.sleep(gate.delay_seconds)
                if self.headers.get("Authorization") not in _ALLOWED:
                    self._answer(401, b'{"error_code": 401, "message": "who are you?"}')
                    return
                kind = {"Content-Type": self.headers.get("Content-Type", "application/json")}
                asked = urllib.request.Request(behind + self.path, body, kind)  # noqa: S310  our own
                try:
                    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310  likewise
                        self._answer(answer.status, answer.read())
                except urllib.error.HTTPError as error:
                    with error:
                        self._answer(error.code, error.read())

            def _answer(self, status: int, body: bytes) -> None:
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):  # who asked did not wait
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it lets in."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
