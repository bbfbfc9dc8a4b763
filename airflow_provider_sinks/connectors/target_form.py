"""What a form asks a person about a target, as data: who makes the form is Airflow's side."""

from __future__ import annotations

import re
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
    :param storage: name of the field for a connection that may be left empty, as of the storage of a folder.
    :param path: name of the field that says in which folder the target lies.
    """

    fields: Mapping[str, Mapping[str, Any]]
    target: str
    connection: str | None = None
    storage: str | None = None
    path: str | None = None

    def offering(
        self, connections: Sequence[str] | None, paths: Sequence[str] | None
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return the fields, with nothing to choose but what is offered.

        :param connections: for the field ``storage``, which must then be filled in; ``None``: any.
        :param paths: folders for the field ``path``, and all that is below them; ``None``: any.
        """
        fields = {name: dict(rules) for name, rules in self.fields.items()}
        if self.storage is not None and connections is not None:
            fields[self.storage].pop("default", None)
            fields[self.storage] |= {"type": "string", "enum": list(connections)}
        if self.path is not None and paths is not None:
            fields[self.path]["pattern"] = _below(paths)
        return fields

    def takes_path(self, path: str) -> bool:
        """Return whether a folder may be offered: one that the field takes, and that leads nowhere else."""
        rules = self.fields[self.path] if self.path is not None else {}
        is_like = re.fullmatch(str(rules.get("pattern", "")), path) is not None
        return is_like and re.fullmatch(_below([path]), path) is not None


def _below(folders: Sequence[str]) -> str:
    """Return the pattern of these folders and all below them, without a way out by dots."""
    scheme, name = r"(?:[a-z0-9]+:/)?", r"(?:/(?!\.{1,2}(?:/|$))[^/\s?#%\\]+)"
    one = "|".join(re.escape(folder.rstrip("/")) for folder in folders)
    return rf"^(?={scheme}{name}+/?$)(?:{one}){name}*/?$"


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
