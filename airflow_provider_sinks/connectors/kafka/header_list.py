"""The headers of one message as a list of librdkafka's own: it takes the lengths of names.

As parts of a call names end at their first zero byte, as texts do in C. A list costs a call for each header,
so only messages that have such a name get one.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from airflow_provider_sinks.connectors.kafka import librdkafka

ZERO = "\0"


class HeaderList:
    """A list that belongs to us until a message has taken it over.

    :param headers: names and values, in their order; a null has no value.
    """

    def __init__(self, headers: Iterable[tuple[str, bytes | None]]) -> None:
        c, given = librdkafka.library(), list(headers)
        self.address: int = c.rd_kafka_headers_new(len(given))
        self._end = weakref.finalize(self, c.rd_kafka_headers_destroy, self.address)
        for name, value in given:
            text = name.encode()
            c.rd_kafka_header_add(self.address, text, len(text), value, len(value or b""))

    def is_taken(self) -> None:
        """Leave it to librdkafka: a call that has taken a message frees its headers too."""
        self._end.detach()
