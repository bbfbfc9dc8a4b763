"""Which rows without a key a topic takes: a compacted one takes none, and its refusal names no row.

Where nobody may read the topic's settings, and such rows may be set aside, the broker is asked before the
first rows of a writer (:mod:`.keyless_question`), and again behind each transaction of which some were. Else
they are written: most topics take them. If the broker then refuses a record, no attempt can help, and the
right that is missing is named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.connectors.kafka.columns import KEY, is_null
from airflow_provider_sinks.connectors.kafka.limits import TopicLimit
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.topic_facts import POLICY, grant
from airflow_provider_sinks.connectors.rows import ERROR
from airflow_provider_sinks.core.errors import UnavailableError

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.run import KafkaTopics

_FRESH_SECONDS = 1.0


class RowKeys:
    """Whether a writer's topics take records without a key, as it was when it was last asked for.

    :param options: the connection; holds secrets and is never printed.
    :param sink: the sink's name.
    :param topics: those of the writer.
    :param known: what they take.
    :param read: asks for that anew.
    """

    def __init__(
        self,
        options: KafkaOptions,
        sink: str,
        topics: KafkaTopics,
        known: Mapping[str, TopicLimit],
        read: Callable[[], Mapping[str, TopicLimit]],
    ) -> None:
        self._options = options
        self._sink = sink
        self._topics = topics
        self._known = known
        self._read = read
        self._asked_at = time.monotonic()
        self._gave_some = False
        self._takes_keyless: bool | None = None
        self._has_just_asked = False

    @property
    def must_be_asked(self) -> bool:
        """Whether nobody may see if the data topic is compacted, it was not asked, and that would help."""
        has_aside = self._topics.dead_letter is not None
        return has_aside and self._is_hidden and self._takes_keyless is None

    def learn(self, *, takes_keyless: bool) -> None:
        """Take the broker's answer."""
        self._takes_keyless, self._has_just_asked = takes_keyless, True

    def refused(self, rows: pa.RecordBatch) -> dict[int, str]:
        """Return which rows the data topic does not take as they have no key, by index, and why.

        :raises RejectedRowError: when such a row has nowhere else to go.
        :raises UnavailableError: the topic's settings could not be asked for.
        """
        keys = rows.column(KEY)
        if not keys.null_count:
            return {}
        lacking = self._lacking(rows) if self._refuses_keyless else []
        if not lacking or not self._still_refuses_keyless():
            self._gave_some = True
            return {}
        if self._topics.dead_letter is None:
            raise self._rejection(f"It has no key, and {POLICY} of the topic has compact.", lacking[0])
        what = "takes" if self._is_hidden else "is compacted, and takes"
        why = f'Topic "{self._topics.data}" {what} no record without a key.'
        return dict.fromkeys(lacking, why)

    def forget(self) -> None:
        """Forget that rows without a key were given: a transaction is over, and the topic may change now."""
        self._gave_some = self._has_just_asked = False
        if not self._takes_keyless:
            self._takes_keyless = None

    def demand_taken(self, topic: str) -> None:
        """Raise when a record that a broker found invalid may be one without a key.

        :raises UnavailableError: the topic is compacted now; a writer that is opened anew goes by that.
        :raises RejectedRowError: nobody may see whether it is, so that no attempt can help.
        """
        if topic == self._topics.data and not self._gave_some:
            return
        is_compacted = self._read()[topic].is_compacted
        if is_compacted is None and topic == self._topics.data and self._takes_keyless:
            is_compacted = None if self._has_just_asked else True
        if is_compacted is None:
            raise self.hidden(is_letter=topic == self._topics.dead_letter)
        if is_compacted:
            raise UnavailableError(
                f'{POLICY} of topic "{topic}" has changed',
                "It is compacted now, and refused a record without a key.",
                "The task is repeated; nothing of it is visible.",
            )

    def hidden(self, *, is_letter: bool = False) -> RejectedRowError:
        """Return our error for a record that a topic refused whose settings are hidden."""
        detail = (
            "The broker refused a record. If the topic is compacted, which this user may not see, it takes "
        )
        detail += "none without a key."
        topic, told = self._topics.data, self._rejection(detail, None)
        if is_letter and self._topics.dead_letter is not None:
            topic = self._topics.dead_letter
            told = keyless_letter(topic, self._sink, detail)
        command = grant(topic, "DescribeConfigs", self._options.bootstrap_servers)
        return RejectedRowError(told.primary, told.detail, f"{told.hint} To have it seen: {command}")

    def _lacking(self, rows: pa.RecordBatch) -> list[int]:
        """Return which rows have no key and are to be written."""
        found: list[int] = np.flatnonzero(is_null(rows.column(KEY)) & is_null(rows.column(ERROR))).tolist()
        return found

    @property
    def _is_hidden(self) -> bool:
        return self._known[self._topics.data].is_compacted is None

    @property
    def _refuses_keyless(self) -> bool:
        return bool(self._known[self._topics.data].is_compacted) or (
            self._is_hidden and self._takes_keyless is False
        )

    def _still_refuses_keyless(self) -> bool:
        """Look again if the last look was not just now: the policy may have been changed since."""
        if self._is_hidden:
            return self._refuses_keyless  # asked in this very transaction
        if time.monotonic() - self._asked_at > _FRESH_SECONDS:
            self._known = self._read()
            self._asked_at = time.monotonic()
        return self._refuses_keyless

    def _rejection(self, detail: str, row: int | None) -> RejectedRowError:
        servers, data = self._options.bootstrap_servers, self._topics.data
        aside = "" if self._topics.dead_letter else ", set them aside (`dead_letter: {topic: ...}`)"
        return RejectedRowError(
            f'topic "{data}" takes no row of sink "{self._sink}" without a key',
            detail,
            f"Give such rows a key (target.kafka.key), leave them out (`where`){aside}, or have the topic "
            f"keep rows without one: kafka-configs.sh --bootstrap-server {servers} --alter "
            f"--entity-type topics --entity-name {data} --add-config {POLICY}=delete.",
            row,
        )


def keyless_letter(topic: str, sink: str, detail: str) -> RejectedRowError:
    """Return our error for a dead letter whose topic takes none without a key."""
    return RejectedRowError(
        f'topic "{topic}" takes no dead letter of sink "{sink}" without a key',
        detail,
        f"Give the topic {POLICY}=delete, or name another one in `dead_letter`: in a compacted one letters "
        "of one key replace each other, too.",
    )
