"""No answer of a registry is longer, or takes longer, than one needs: an address may lead to any server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from confluent_kafka.schema_registry.common._httpx_compat import httpx

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

LONGEST_BYTES = 4 * 1024 * 1024
"""A schema with thousands of fields has a tenth of it."""
SLOWEST_SECONDS = 20.0
_PLAIN = "identity"


class UnfitAnswerError(httpx.ReadError):
    """An answer that is not read to its end."""


def bounded(client: SchemaRegistryClient) -> SchemaRegistryClient:
    """Return a client that reads no more of an answer, and none that could unpack to more."""
    session = client._rest_client.session  # noqa: SLF001  it takes none from outside
    session.headers["Accept-Encoding"] = _PLAIN
    session.event_hooks = {"response": [_bound]}
    return client


def _bound(response: httpx.Response) -> None:
    """Bound one answer; httpx calls it before it reads the body."""
    if (packed := response.headers.get("Content-Encoding", _PLAIN)) != _PLAIN:
        raise UnfitAnswerError(f"the answer is packed by {packed[:20]!r}, though it was asked for as it is")
    response.stream = _Bounded(cast("httpx.SyncByteStream", response.stream))


class _Bounded(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        begun, length = time.monotonic(), 0
        for part in self._stream:
            length += len(part)
            if length > LONGEST_BYTES:
                raise UnfitAnswerError(f"the answer has more than {LONGEST_BYTES:,} bytes")
            if time.monotonic() - begun > SLOWEST_SECONDS:
                raise UnfitAnswerError(f"the answer has not ended after {SLOWEST_SECONDS:g} s")
            yield part

    def close(self) -> None:
        self._stream.close()
