"""The status as everybody may see it: key ``status`` of the sink's asset, always small.

It says how a launch does, and nothing that grows with the number of partitions; the witness has the offsets.
What came before goes on until a launch knows better: the rows and the epoch until it has read the progress,
the newest error with its hint until it has committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, assert_never

from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus

PUBLISHED_BYTES_MAX = 4_000
_WAIT_CHARACTERS_MAX = 500
_FIELDS = (
    "sink",
    "launch",
    "run",
    "generation",
    "epoch",
    "rows",
    "rows_total",
    "dead_total",
    "rows_per_second",
    "started_at",
    "at",
    "spark_ui_url",
    "spark_app_id",
)
_COUNTS = ("generation", "epoch", "rows_total", "dead_total")
_CALM = timedelta(minutes=2)
"""A launch that runs for so long and has nothing to commit has left the error before it behind, too."""
_TEXTS = ("detail", "hint", "primary")
"""The texts of an error, in the order in which they are cut when there is too much of them."""


def published(
    status: SinkStatus, *, follows: bool = True, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the status as the JSON object that is published; at most :data:`PUBLISHED_BYTES_MAX` long.

    ``lag`` is the sum over all source partitions, or ``None`` before the first epoch of the launch; ``error``
    is ``None`` or has ``launch``, ``kind``, ``primary``, ``detail`` and ``hint``. ``waits_for`` is there
    while a start is held up, ``health`` and ``metrics`` of the target once it was asked.

    :param follows: whether the sink launches again when one of its connections changes.
    :param before: what was published last, by this launch or one before.
    """
    document: dict[str, Any] = {name: getattr(status, name) for name in _FIELDS}
    document["state"] = status.state.value
    document["follow_connections"] = follows
    document["lag"] = sum(status.lag.values()) if status.lag else None
    if status.waits_for:
        document["waits_for"] = status.waits_for[:_WAIT_CHARACTERS_MAX]
    if status.health:
        document["health"] = status.health[:_WAIT_CHARACTERS_MAX]
        document["metrics"] = dict(status.metrics)
    document |= _known(status, before or {})
    room_bytes = PUBLISHED_BYTES_MAX - _size({**document, "error": None})
    document["error"] = _fitting(_newest_error(status, before or {}), room_bytes)
    return document


def _newest_error(status: SinkStatus, before: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return why this launch ended, or what came before it and is not over."""
    if status.error is None:
        return None if _is_settled(status) else before.get("error")
    texts = asdict(status.error)
    del texts["connections"]
    return {"launch": status.launch, **texts}


def _known(status: SinkStatus, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts that a launch does not know yet, which has not read the progress."""
    order = int(before.get("generation") or 0), int(before.get("epoch") or 0)
    if status.run or order < (status.generation, status.epoch):
        return {}
    return {name: before[name] for name in _COUNTS if before.get(name)}


def _is_settled(status: SinkStatus) -> bool:
    """Return whether the error of an earlier launch is over."""
    match status.state:
        case SinkState.STARTING:
            return False
        case SinkState.RUNNING:
            return bool(status.rows or status.lag) or _age(status) > _CALM
        case SinkState.STOPPED:
            return bool(status.run)
        case SinkState.REFUSED | SinkState.FENCED | SinkState.FAILED:
            return False
    assert_never(status.state)


def _age(status: SinkStatus) -> timedelta:
    return datetime.fromisoformat(status.at) - datetime.fromisoformat(status.started_at)


def _fitting(error: Mapping[str, Any] | None, room_bytes: int) -> dict[str, Any] | None:
    """Return an error with its texts cut until it fits."""
    if error is None:
        return None
    texts = dict(error)
    while _size(texts) > room_bytes:
        name = next((name for name in _TEXTS if len(texts[name]) > 1), None)
        if name is None:
            break
        texts[name] = texts[name][: len(texts[name]) * 3 // 4].rstrip("…") + "…" * (len(texts[name]) > 8)
    return texts


def _size(document: object) -> int:
    return len(json.dumps(document))
