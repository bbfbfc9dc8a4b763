"""Where a Delta table lies: a folder, or an address of an object store."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from airflow_provider_sinks.core.spec.problems import UnfitError

_ON_AZURE = ("abfs", "abfss", "az")
SCHEMES = ("file", "s3", "s3a", "gs", *_ON_AZURE)
PATH_PATTERN = r"^(/|[a-z0-9]+://)[^\s?#\x00-\x1f]+$"


def checked(value: str) -> str:
    """Return a place without a slash at its end.

    :raises UnfitError: it is none.
    """
    if not re.fullmatch(PATH_PATTERN, value):
        raise UnfitError(f"{value!r} is no place of a table", "a whole path, or s3://bucket/folder")
    scheme, parts = scheme_of(value), urlsplit(value).path.rstrip("/").split("/")
    if scheme not in SCHEMES:
        raise UnfitError(f"{scheme!r} is no storage that is known", f"one of {', '.join(SCHEMES)}")
    if urlsplit(value).username is not None and scheme not in _ON_AZURE:
        raise UnfitError("the place of a table holds a login", "it belongs in the connection")
    place = value.removeprefix("file://").rstrip("/")
    if scheme == "file" and not re.match(r"/[^/]", place):
        raise UnfitError(f"{value!r} is no place of a table", "a whole path, such as /data/orders")
    if "\\" in value:
        raise UnfitError(f"{value!r} is no place of a table", "write it without a backslash")
    if {"..", "."} & set(parts) or "" in parts[1:] or len(parts) < 2 or any("%" in part for part in parts):
        raise UnfitError(f"{value!r} is no place of a table", "write its whole path, without .. and %")
    return place


def scheme_of(place: str) -> str:
    """Return what kind of storage it is; ``file`` for a plain path."""
    return place.partition("://")[0] if "://" in place else "file"


def is_local(place: str) -> bool:
    """Whether it is a folder of the machine, or one that is mounted there."""
    return scheme_of(place) == "file"


def system_of(place: str) -> str:
    """Return what tells its storage from every other."""
    return "file system" if is_local(place) else f"{scheme_of(place)}://{urlsplit(place).netloc}"
