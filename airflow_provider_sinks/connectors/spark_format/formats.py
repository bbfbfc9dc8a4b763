"""The formats of Spark's: who writes them how, which options they take, and what Spark guarantees of each."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.kinds import is_ours, points
from airflow_provider_sinks.core.spec.problems import UnfitError

FORMAT_PATTERN: Final = r"^[A-Za-z][\w.$-]{0,199}$"
JDBC: Final = "jdbc"
_LOG = "the log of Spark's file sink (`_spark_metadata`)"
_FILES = f"exactly once for readers that use {_LOG}, as Spark does, and at least once for all others"
_AGAIN = "an epoch that a crash repeats is written again"
_JDBC = f"at least once, as rows go by foreachBatch and {_AGAIN}"
_NONE = "none, as nothing that is written can be read again"
_OTHER = f"that of the format, and at most at least once, as rows go by foreachBatch and {_AGAIN}"


@dataclass(frozen=True)
class SparkFormat:
    """One format.

    :param options: what may be set, as Spark spells it; ``None``: whatever the format takes.
    :param promise: what Spark guarantees.
    :param is_files: rows go into a folder, by Spark's file sink.
    :param is_shown: rows are shown to people, so that not all of them are looked at.
    """

    name: str
    promise: str
    options: tuple[str, ...] | None = None
    is_files: bool = False
    is_shown: bool = False

    @property
    def guarantee(self) -> str:
        """What Spark guarantees, in one sentence."""
        return f"Spark's own writer writes the rows, and its guarantee for {self.name} holds: {self.promise}."

    def checked_option(self, name: str) -> str:
        """Return an option as Spark spells it.

        :raises UnfitError: it is refused or not known.
        """
        if _SECRET.search(name):
            raise UnfitError("holds a secret, and a spec is no place for one", _NO_SECRETS)
        if name.lower() in _OWNED:
            raise UnfitError(f"cannot be set: {_OWNED[name.lower()]}")
        if self.options is None:
            return name
        spelled = {option.lower(): option for option in self.options}
        if name.lower() not in spelled:
            hint = nearest(name, self.options) or _known(self.options)
            raise UnfitError(f"is not an option of {self.name} that can be set", hint)
        return spelled[name.lower()]


def _known(options: tuple[str, ...]) -> str:
    return f"known are {', '.join(options)}" if options else "it takes none"


_SECRET = re.compile(
    r"(?i)secret|passw|passphrase|pwd|token|credential|(access|account|api|private|auth|shared)[._-]?key|jaas|(^|[._-])sas"
    r"|(^|[._-])(key|auth|user|login)$|certificate|keystore|truststore"
)
_LOGIN = re.compile(r"(?i)://[^/\s]*@|(password|passwd|pwd|secret|token|sig|accountkey)\s*=")
_NO_SECRETS: Final = (
    "take it out: jdbc has connection, an Airflow connection; other formats take it from Spark's conf, or "
    "from the environment of driver and executors"
)
_OWNED: Mapping[str, str] = {
    "path": "it is path beside options",
    "checkpointlocation": "it is checkpoint of the sink",
    "mode": "rows are appended",
    "outputmode": "it is output_mode of the sink",
}
"""Lower case, as Spark does not know case in names of options, to the reason."""

_ZONES = ("dateFormat", "timestampFormat", "timestampNTZFormat", "locale")
_CSV = (
    "charToEscapeQuoteEscaping",
    "compression",
    *_ZONES,
    "emptyValue",
    "encoding",
    "escape",
    "escapeQuotes",
    "header",
    "ignoreLeadingWhiteSpace",
    "ignoreTrailingWhiteSpace",
    "lineSep",
    "nullValue",
    "quote",
    "quoteAll",
    "sep",
)
_PARQUET = (
    "compression",
    "parquet.block.size",
    "parquet.bloom.filter.enabled",
    "parquet.enable.dictionary",
    "parquet.page.size",
)
_ORC = ("compression", "orc.bloom.filter.columns", "orc.row.index.stride", "orc.stripe.size")
_JSON = ("compression", *_ZONES, "encoding", "ignoreNullFields", "lineSep", "timeZone")

FORMATS: Mapping[str, SparkFormat] = {
    one.name: one
    for one in (
        SparkFormat("parquet", _FILES, _PARQUET, is_files=True),
        SparkFormat("orc", _FILES, _ORC, is_files=True),
        SparkFormat("csv", _FILES, _CSV, is_files=True),
        SparkFormat("json", _FILES, _JSON, is_files=True),
        SparkFormat("text", _FILES, ("compression", "encoding", "lineSep"), is_files=True),
        SparkFormat(JDBC, _JDBC, ("batchsize", "isolationLevel", "numPartitions", "queryTimeout")),
        SparkFormat("console", _NONE, ("numRows", "truncate"), is_shown=True),
        SparkFormat("noop", _NONE, ()),
    )
}
"""Those that are known; any other that is installed is taken as it is."""

_UNFIT: Final = ("memory", "rate", "rate-micro-batch", "socket", "foreach", "foreachBatch", "binaryFile")
KIND: Final = "spark"
"""How a spec calls this kind of target."""


@functools.cache
def _refused() -> Mapping[str, tuple[str, str]]:
    """Return the formats that no sink writes by Spark's own writer, each with the reason and the way on."""
    better = {name: _better(name) for name in points() if is_ours(name) and name != KIND}
    unfit = "format {} cannot be written by a sink", "noop and console write nowhere"
    return better | {name: (unfit[0].format(name), unfit[1]) for name in _UNFIT}


def _better(name: str) -> tuple[str, str]:
    return f"format {name} has a target of its own, which is exactly once", f"target: {{{name}: ...}}"


def checked_format(value: str) -> str:
    """Return the name of a format; those that are known in Spark's own spelling.

    :raises UnfitError: no sink writes it like this.
    """
    if not re.fullmatch(FORMAT_PATTERN, value):
        raise UnfitError(f"{value[:60]!r} is no format of Spark's", "such as parquet, jdbc, noop")
    spelled = {name.lower(): name for name in (*FORMATS, *_refused())}
    name = spelled.get(value.lower(), value)
    if name in _refused():
        raise UnfitError(*_refused()[name])
    return name


def format_of(name: str) -> SparkFormat:
    """Return what is known of a format."""
    return FORMATS.get(name) or SparkFormat(name, _OTHER)


def demand_no_login(value: str) -> None:
    """Refuse the value of an option that holds a secret.

    :raises UnfitError: it does; the value is not shown.
    """
    if _LOGIN.search(value):
        raise UnfitError("holds a login or a secret", _NO_SECRETS)
