"""An Iceberg REST catalog that says what a test, or an attacker, wants said.

::

    with answering_catalog({"/v1/config": {"overrides": {"uri": "http://elsewhere"}}}) as catalog:
        ...  # {"catalog": "rest"}, host=catalog.url
    assert catalog.asked == ["/v1/config"]
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

CONFIG = "/v1/config"
TABLE = "/v1/namespaces/web/tables/clicks"
TOKENS = "/v1/oauth/tokens"


@dataclass(frozen=True)
class Said:
    """An answer that is no JSON, or no success.

    :param location: where it leads on to.
    """

    status: int
    body: bytes = b""
    location: str = ""


MUTE = Said(0)
"""No answer: the way stays open until whoever asked has gone."""
TRICKLE = Said(-1)
"""An answer of a byte now and then, until whoever asked has gone."""


@dataclass
class AnsweringCatalog:
    """A catalog, and what it was asked.

    :param answers: by path; ``{}`` for each that is not there.
    :param asked: the paths, in their order.
    :param headers: of the newest question to each path.
    """

    url: str
    answers: Mapping[str, Any]
    asked: list[str] = field(default_factory=list)
    headers: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def answer(self, path: str, headers: Mapping[str, str]) -> Said:
        """Return what is said to a question."""
        path = urlsplit(path).path
        self.asked.append(path)
        self.headers[path] = headers
        found = self.answers.get(path, {})
        return found if isinstance(found, Said) else Said(200, json.dumps(found).encode())


@contextlib.contextmanager
def answering_catalog(answers: Mapping[str, Any]) -> Iterator[AnsweringCatalog]:
    """Start a catalog on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say()

        def do_POST(self) -> None:
            self._say()

        def log_message(self, *_: object) -> None:
            pass

        def _say(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = catalog.answer(self.path, dict(self.headers))
            if said is MUTE:
                self.rfile.read(1)
                return
            if said is TRICKLE:
                self._trickle()
                return
            self.send_response(said.status)
            if said.location:
                self.send_header("Location", said.location)
            self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def _trickle(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                while True:
                    self.wfile.write(b" ")
                    time.sleep(0.1)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        catalog = AnsweringCatalog(f"http://127.0.0.1:{server.server_address[1]}", answers)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield catalog
        finally:
            server.shutdown()
            thread.join()


def table(location: str = "s3://bucket/clicks", **properties: str) -> dict[str, Any]:
    """Return a table without rows, as a catalog tells it."""
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import new_table_metadata
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
    from pyiceberg.types import LongType, NestedField

    made = new_table_metadata(
        Schema(NestedField(1, "id", LongType())),
        UNPARTITIONED_PARTITION_SPEC,
        UNSORTED_SORT_ORDER,
        location,
        properties,
    )
    return {
        "metadata-location": f"{location}/metadata/1.metadata.json",
        "metadata": json.loads(made.model_dump_json()),
    }
