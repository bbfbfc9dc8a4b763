"""The PEM files that connections name: their text goes into the options, so that no other machine needs them.

One rule for all, and the same words whatever is the matter: no message tells which files a machine has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from airflow_provider_sinks.core.errors import ConfigurationError, Problem

PEM_FILES = {
    "ssl.ca.location": "ssl.ca.pem",
    "ssl.certificate.location": "ssl.certificate.pem",
    "ssl.key.location": "ssl.key.pem",
}
"""Options that name a file, and those that hold its text."""
LARGEST_PEM_BYTES = 1024 * 1024
_HINT = "one PEM file of at most 1 MiB, with all certificates, that each worker may read"


def with_pem_files_read(conn_id: str, options: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the options with the text of each file in the place of its name.

    :param conn_id: the Airflow connection that they came from.
    :param prefix: what stands before the name of an option where its author wrote it.
    :raises ConfigurationError: with every file that cannot be used.
    """
    read, problems = dict(options), []
    for located, inline in PEM_FILES.items():
        if located in options:
            try:
                read[inline] = _pem(read.pop(located))
            except (OSError, ValueError):  # for one reason or another
                problems.append(Problem(prefix + located, f"{options[located]!r} cannot be used", _HINT))
    if problems:
        raise ConfigurationError(f'connection "{conn_id}" names files that cannot be used', problems)
    return read


def pem_text_problems(options: Mapping[str, str]) -> Iterator[Problem]:
    """Judge the PEM that stands in options as text: Python's TLS takes ASCII only, in comments too."""
    for inline in PEM_FILES.values():
        if not options.get(inline, "").isascii():
            what = "holds letters beyond ASCII, and PEM has none"
            yield Problem(inline, what, "keep the lines from -----BEGIN to -----END, without comments")


def _pem(path: str) -> str:
    file = Path(path)
    if not file.is_file() or file.stat().st_size > LARGEST_PEM_BYTES:  # no folder, and no pipe that hangs
        raise ValueError(path)
    text = file.read_text(encoding="ascii", errors="ignore")  # comments alone hold anything else
    if "-----BEGIN " not in text:
        raise ValueError(path)
    return text
