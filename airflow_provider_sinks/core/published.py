"""The status as everybody may see it: key ``status`` of the sink's asset, always small.

It says how a launch does, and nothing that grows with the number of partitions; the witness has the offsets.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from airflow_provider_sinks.core.status import SinkStatus, StatusError

PUBLISHED_BYTES_MAX = 4_000
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
_TEXTS = ("detail", "hint", "primary")
"""The texts of an error, in the order in which they are cut when there is too much of them."""


def published(status: SinkStatus, *, follows: bool = True) -> dict[str, Any]:
    """Return the status as the JSON object that is published; at most :data:`PUBLISHED_BYTES_MAX` long.

    ``lag`` is the sum over all source partitions, or ``None`` before the first epoch of the launch; ``error``
    is ``None`` or has ``kind``, ``primary``, ``detail`` and ``hint``.

    :param follows: whether the sink launches again when one of its connections changes.
    """
    document: dict[str, Any] = {name: getattr(status, name) for name in _FIELDS}
    document["state"] = status.state.value
    document["follow_connections"] = follows
    document["lag"] = sum(status.lag.values()) if status.lag else None
    document["error"] = _fitting(status.error, PUBLISHED_BYTES_MAX - _size({**document, "error": None}))
    return document


def _fitting(error: StatusError | None, room_bytes: int) -> dict[str, str] | None:
    """Return an error with its texts cut until it fits."""
    if error is None:
        return None
    texts: dict[str, str] = asdict(error)
    while _size(texts) > room_bytes:
        name = next((name for name in _TEXTS if len(texts[name]) > 1), None)
        if name is None:
            break
        texts[name] = texts[name][: len(texts[name]) * 3 // 4].rstrip("…") + "…" * (len(texts[name]) > 8)
    return texts


def _size(document: object) -> int:
    return len(json.dumps(document))
