"""Under which name a registry keeps a schema: its subject.

>>> subject("topic_name", "orders", Part.VALUE, "shop.Order")
'orders-value'
>>> subject("{record}.{part}", "orders", Part.KEY, "shop.Order")
'shop.Order.key'
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.problems import UnfitError

STRATEGIES: Mapping[str, str] = {
    "topic_name": "{topic}-{part}",
    "record_name": "{record}",
    "topic_record_name": "{topic}-{record}",
}
"""Confluent's own, by our names for them, as templates."""
TOPIC_NAME = "topic_name"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS = ("topic", "record", "part")


class Part(enum.StrEnum):
    """What of a record a schema describes."""

    KEY = "key"
    VALUE = "value"


def subject(naming: str, topic: str, part: Part, record: str) -> str:
    """Return the subject of a schema.

    :param naming: one of :data:`STRATEGIES`, or a template.
    :param record: the full name of the schema's record.
    """
    names = {"topic": topic, "record": record, "part": part.value}
    return _PLACEHOLDER.sub(lambda found: names[found[1]], STRATEGIES.get(naming, naming))


def for_topic(naming: str, topic: str) -> str:
    """Return a naming as a template that gives the subjects of one topic, whichever topic is read by it.

    >>> for_topic("topic_name", "orders")
    'orders-{part}'
    """
    return STRATEGIES.get(naming, naming).replace("{topic}", topic)


def needs_record(naming: str) -> bool:
    """Whether the name of the record is part of the subject, so that it must be known to find the schema."""
    return "{record}" in STRATEGIES.get(naming, naming)


def tells_parts_apart(naming: str) -> bool:
    """Whether key and value get two subjects even where their records have one name."""
    return "{part}" in STRATEGIES.get(naming, naming)


def check_naming(value: str) -> str:
    """Return a naming as it is.

    :raises UnfitError: it is no strategy and no template.
    """
    if value in STRATEGIES:
        return value
    known = ", ".join(STRATEGIES)
    unknown = [name for name in _PLACEHOLDER.findall(value) if name not in _PLACEHOLDERS]
    if unknown:
        hint = nearest(unknown[0], _PLACEHOLDERS) or "{topic}, {record} and {part} are known"
        raise UnfitError(f"{{{unknown[0]}}} stands for nothing", hint)
    if not _PLACEHOLDER.search(value) or re.search(r"[{}]", _PLACEHOLDER.sub("", value)):
        hint = nearest(value, STRATEGIES) or f"one of {known}, or a template such as {{topic}}-{{part}}"
        raise UnfitError(f"{value!r} names no subjects", hint)
    return value
