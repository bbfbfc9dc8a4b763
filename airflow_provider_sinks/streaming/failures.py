"""Why did the query end? Spark wraps every reason in its own words; this finds ours, or the root's."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.errors import AnalysisException

from airflow_provider_sinks.core.errors import (
    ConfigurationError,
    JobFailedError,
    Problem,
    SinkError,
    UnavailableError,
    kind_of,
)
from airflow_provider_sinks.core.launch import out_of_memory

_OURS = re.compile(
    r"airflow_provider_sinks\.\S+?\.(?P<kind>\w+Error): (?P<primary>[^\n]+)"
    r"(?:\n(?:Detail: (?P<detail>[^\n]*(?:\n  [^\n]*)*)\n?)?(?:Hint: (?P<hint>[^\n]*))?)?"
)
_CHAINED = re.compile(
    r"\s*(?:During handling of the above exception, another exception occurred|"
    r"The above exception was the direct cause of the following exception):"
)
_ROOT = re.compile(r"(?:Caused by|^): (?:[\w.$]+\.)?(\w+(?:Exception|Error)): ([^\n]+)", re.MULTILINE)

_DATA_LOSS = re.compile(
    r"KAFKA_DATA_LOSS|Cannot fetch (?:offset|records)|offset was changed|out of range|may have been lost"
)
_IN_DOUBT = "InDoubtError"
"""A task that cannot tell whether its commit happened has asked a broker that was silent."""
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_NO_FOLDER = re.compile(
    r"ParentNotDirectoryException|AccessControlException|Mkdirs failed|mkdir of .* failed|Read-only file"
)
_NO_KAFKA = re.compile(
    r"Failed to find (?:the )?data source: kafka|"
    r"(?:NoClassDefFoundError|ClassNotFoundException): "
    r"org[./]apache[./](?:kafka|spark[./]\S*kafka010|commons[./]pool2)"
)
_NO_BROKER = re.compile(
    r"Timeout(?:Exception)?\b.*(?:metadata|node|deadline|Cannot fetch record)|"
    r"Timed out waiting for a node assignment|Timeout of \d+ms expired"
)


def ended_by_metrics(query_error: BaseException) -> bool:
    """Whether Spark ended a query only because it could not count its lag (SPARK-57438, in Spark 4.1.1).

    It happens after the first epoch of a query when that epoch was a repetition: it is whole, Spark has
    committed it, and then the Kafka source's metrics meet a null. Starting the query again goes on behind it.
    """
    text = str(query_error)
    return "scala.collection.IterableOps.map" in text and "scala.Option.get()" in text


def met_an_older_driver(query_error: BaseException) -> bool:
    """Whether Spark ended a query for an entry in its checkpoint that it has not written itself.

    The driver of an older start may have been behind the commit of an epoch, and before Spark's own entry
    about it, when the newer one began from that checkpoint. It says nothing else than that epoch, which the
    target has.
    """
    return "CONCURRENT_STREAM_LOG_UPDATE" in str(query_error)


def explain(found: BaseException | None, query_error: BaseException, sink: str) -> SinkError:
    """Return the error to report.

    :param found: what an epoch raised on the driver, or ``None`` when the query failed outside of one.
    :param query_error: what Spark says about the end of the query.
    """
    if isinstance(found, SinkError):
        return found
    text = f"{found or ''}\n{query_error}"
    return _ours(text) or _known(text, sink) or _misfit(found, sink) or _other(text, sink)


def unexpected(error: BaseException, sink: str) -> SinkError:
    """Return the error to report for what Spark, or anything else, raised outside of a running query."""
    text = str(error)
    return (
        _ours(text)
        or _known(text, sink)
        or _misfit(error, sink)
        or JobFailedError(
            f'the job of sink "{sink}" failed',
            f"{type(error).__name__}: {_root(text)}",
            "The driver's log has the whole trace. What was committed stays; a retry resumes exactly there.",
        )
    )


def _ours(text: str) -> SinkError | None:
    """Return the error of ours that a task raised, read back from the traceback that Spark passes on."""
    match = _OURS.search(text)
    while match is not None and _CHAINED.match(text, match.end()):  # the last of them was raised
        later = _OURS.search(text, match.end())
        if later is None:
            break
        match = later
    if match is None:
        return None
    name = "UnavailableError" if match["kind"] == _IN_DOUBT else match["kind"]
    return kind_of(name).told(match["primary"], match["detail"] or "", match["hint"] or "")


def _known(text: str, sink: str) -> SinkError | None:
    cause = _root(text)
    return next((reason(sink, cause) for pattern, reason in _REASONS if pattern.search(text)), None)


def _no_space(sink: str, cause: str) -> SinkError:
    return JobFailedError(
        f'sink "{sink}" has no room left to write its checkpoint or its temporary files',
        cause,
        "Free space where the checkpoint and spark.local.dir are; nothing is lost, a retry resumes.",
    )


def _no_folder(sink: str, cause: str) -> SinkError:
    return ConfigurationError(
        f'sink "{sink}" cannot make the folder for its checkpoint',
        [Problem("checkpoint", cause)],
        "Name a folder or URI that the driver may write, as `checkpoint` of the sink.",
    )


def _no_kafka(sink: str, _cause: str) -> SinkError:
    return ConfigurationError(
        f'Spark of sink "{sink}" cannot read Kafka',
        (),
        'Give packages="org.apache.spark:spark-sql-kafka-0-10_2.13:<version of Spark>", or jars=.',
    )


def _data_loss(sink: str, cause: str) -> SinkError:
    return JobFailedError(
        f'source records of sink "{sink}" are gone before they were read',
        cause,
        "Retention or a deletion took them. Start again: the sink decides from its progress.",
    )


def _no_broker(sink: str, cause: str) -> SinkError:
    return UnavailableError(f'the source brokers of sink "{sink}" do not answer', cause, "Check the brokers.")


_REASONS: tuple[tuple[re.Pattern[str], Callable[[str, str], SinkError]], ...] = (
    (out_of_memory.SIGNS, out_of_memory.out_of_memory),
    (_NO_SPACE, _no_space),
    (_NO_FOLDER, _no_folder),
    (_NO_KAFKA, _no_kafka),
    (_DATA_LOSS, _data_loss),
    (_NO_BROKER, _no_broker),
)
"""By what Spark says, in the order in which it counts."""


def _misfit(error: BaseException | None, sink: str) -> SinkError | None:
    """Return the error for a query with columns, types or functions that Spark does not know."""
    if not isinstance(error, AnalysisException):
        return None
    problem = Problem("query", str(error).splitlines()[0])
    return ConfigurationError(f'Spark does not take the query of sink "{sink}"', [problem])


def _other(text: str, sink: str) -> SinkError:
    return JobFailedError(
        f'the streaming query of sink "{sink}" failed',
        _root(text),
        "The driver's log has the whole trace. What was committed stays; a retry resumes exactly there.",
    )


def _root(text: str) -> str:
    """Return the innermost reason that Spark gives, in one line."""
    causes = _ROOT.findall(text)
    if causes:
        return ": ".join(causes[-1])[:500]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:500] if lines else ""
