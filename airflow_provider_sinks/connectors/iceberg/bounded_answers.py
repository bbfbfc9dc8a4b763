"""No answer of a REST catalog is waited for without end, and none is longer than one needs.

PyIceberg names no limits, and requests has none by itself. An address may lead to any server: one that sends
a byte now and then keeps within each limit for a piece.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from requests import PreparedRequest, ReadTimeout, RequestException, Response
from requests.adapters import HTTPAdapter

ANSWER_SECONDS = (10.0, 60.0)
"""Until a catalog is reached, and for each piece of an answer."""
SLOWEST_SECONDS = 120.0
"""For the body of an answer as a whole."""
LONGEST_BYTES = 256 * 1024 * 1024
"""Of a body, unpacked. A table with ten thousand snapshots has a tenth of it."""


class LongAnswerError(RequestException):
    """An answer that is not read to its end."""


class BoundedAdapter(HTTPAdapter):
    """Sends with limits."""

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        *more: Any,
        **named: Any,
    ) -> Response:
        """Wait for an answer to begin."""
        return super().send(request, stream, timeout or ANSWER_SECONDS, *more, **named)

    def build_response(self, req: PreparedRequest, resp: Any) -> Response:
        """Return the answer; requests reads its body after that."""
        response = super().build_response(req, resp)
        response.raw = _BoundedBody(resp)
        return response


class _BoundedBody:
    """The body as urllib3 has it, piece by piece as they come: its own ``stream`` waits until one is full."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def stream(self, amt: int, decode_content: bool | None = None) -> Iterator[bytes]:
        begun, length = time.monotonic(), 0
        while part := self._body.read1(amt, decode_content=decode_content):
            length += len(part)
            if length > LONGEST_BYTES:
                self._body.close()
                raise LongAnswerError(f"the answer has more than {LONGEST_BYTES:,} bytes")
            if time.monotonic() - begun > SLOWEST_SECONDS:
                self._body.close()
                raise ReadTimeout(f"the answer has not ended after {SLOWEST_SECONDS:g} s")
            yield part
