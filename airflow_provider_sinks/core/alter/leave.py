"""What only the author of a DAG may allow an alteration, and nobody who fills in its form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_sinks.core.errors import Problem

SECRET_PREFIX = "sinks_secret_"  # noqa: S105  how the names of Variables begin

_PREFIX = r"[A-Za-z0-9_.-]+"


@dataclass(frozen=True)
class Leave:
    """What the author allows.

    :param keep_secrets: stored secrets may be sent to another place than they were stored for, and the
        machine's own login where there are none.
    :param secret_prefix: how the names of the Variables begin that may be read as secrets.
    :param allowed_files: the files of the worker that options may be made to name.
    """

    keep_secrets: bool = False
    secret_prefix: str = SECRET_PREFIX
    allowed_files: tuple[str, ...] = ()

    def may_read(self, variable: str) -> bool:
        """Return whether a Variable may be read as a secret."""
        return variable.startswith(self.secret_prefix)

    def may_name(self, path: object) -> bool:
        """Return whether an option may be made to name a file of the worker."""
        return path in self.allowed_files


def leave_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Judge what an author wrote: literals only, so that nothing of a form, an XCom or a Variable can be it.

    :param given: by the names of :class:`Leave`.
    """
    if not isinstance(given["keep_secrets"], bool):
        yield Problem(
            "keep_secrets", "is not True or False, written in the DAG file", "it is never a template"
        )
    prefix = given["secret_prefix"]
    if not isinstance(prefix, str) or not re.fullmatch(_PREFIX, prefix):
        hint = f'letters, digits, "_", "-" and ".", such as {SECRET_PREFIX!r}; it is never a template'
        yield Problem("secret_prefix", "is not the beginning of a Variable's name", hint)
    files = given["allowed_files"]
    if not _are_paths(files):
        hint = '["/etc/kafka/ca.pem"]; it is never a template'
        yield Problem("allowed_files", "is not a list of absolute paths, written in the DAG file", hint)


def mapped_problems(given: Mapping[str, Any], partial: Mapping[str, Any]) -> Iterator[Problem]:
    """Judge what a mapped task was given: what ``expand`` brought may come from anywhere.

    :param partial: what the author wrote in ``partial``.
    """
    for name, value in given.items():
        if value != partial.get(name, getattr(Leave(), name)):
            what = "comes from expand, and may come from anybody"
            yield Problem(name, what, f"write it in the DAG file: partial({name}=...)")


def _are_paths(files: object) -> bool:
    if not isinstance(files, Sequence) or isinstance(files, str):
        return False
    return all(isinstance(path, str) and path.startswith("/") and "{" not in path for path in files)
