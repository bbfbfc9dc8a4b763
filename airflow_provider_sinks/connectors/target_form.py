"""What a form asks a person about a target, as data: who makes the form is Airflow's side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class TargetForm:
    """The fields of a target, and what becomes of them.

    :param fields: by name, the JSON Schema of each, with its ``title``. One without ``default`` must be
        filled in. None may be called like a field of the source (``forms/run_sink_once.py``).
    :param target: Jinja text, from ``params``, that becomes the sink's ``target`` as JSON. What a person
        wrote goes through ``tojson``, so that no text leaves its place.
    :param connection: title of the field ``target_connection``, for a target that is not on the connection
        of the source; ``None`` where there is no such field.
    """

    fields: Mapping[str, Mapping[str, Any]]
    target: str
    connection: str | None = None


def mode_and_key(modes: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the fields of a target whose rows may replace each other.

    :param modes: what a row may do; the first is the default.
    """
    return {
        "mode": {"type": "string", "enum": list(modes), "default": modes[0], "title": "What a row does"},
        "key": {
            "type": ["null", "string"],
            "default": None,
            "title": "Columns of the key",
            "description": "For upsert, with commas between them.",
        },
    }


MODE_AND_KEY: Final = (
    '"mode": {{ params.mode | tojson }},'
    ' "key": {{ (params.key or "").split(",") | map("trim") | select | list | tojson }}'
)
"""What becomes of them in a target."""
