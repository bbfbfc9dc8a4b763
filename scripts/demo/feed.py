"""Pageviews that go on coming while something happens: those after the ones that the demo begins with."""

from __future__ import annotations

import threading
from itertools import islice
from typing import Self

from confluent_kafka import Producer

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import LocalServiceError
from scripts.demo.pageviews import ROWS, pageviews, quiet

_AT_ONCE = 20
_PAUSE_SECONDS = 0.1
_NO_END = 1_000_000_000
_DELIVERY_SECONDS = 30.0


class Feed(threading.Thread):
    """Writes a few pageviews again and again while the ``with`` block runs.

    :param topic: the one that ``fill_topic`` filled.
    """

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        super().__init__(name="feed", daemon=True)
        self.rows = ROWS
        self._producer = Producer({**quiet(broker), "enable.idempotence": True})
        self._topic = topic
        self._over = threading.Event()

    def run(self) -> None:
        """Write until the block is over. Called by ``start``."""
        views = islice(pageviews(_NO_END), ROWS, None)
        while not self._over.wait(_PAUSE_SECONDS):
            for view in islice(views, _AT_ONCE):
                self._producer.produce(self._topic, view.json, view.userid)
                self.rows += 1
            self._producer.poll(0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Return when the broker has all of them.

        :raises LocalServiceError: it does not take them.
        """
        self._over.set()
        self.join()
        if left := self._producer.flush(_DELIVERY_SECONDS):
            raise LocalServiceError(f"{left} pageviews were not written")
