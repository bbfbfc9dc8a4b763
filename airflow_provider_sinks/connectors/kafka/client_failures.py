"""What goes wrong between a client and its cluster, and what that means to people.

librdkafka retries for ever in the background and tells *why* only through its error callback.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.errors import AuthenticationError, SinkError, UnavailableError

REFUSED_CREDENTIALS = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001  public in C
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)
NOT_TRUSTED = frozenset({KafkaError._SSL})  # noqa: SLF001  public in C


class Complaints:
    """What librdkafka has complained about; give :meth:`take` to a client as ``error_cb``."""

    def __init__(self) -> None:
        self.final: KafkaError | None = None
        self.newest: KafkaError | None = None

    def forget(self) -> None:
        """Begin anew: what was refused an hour ago may be right by now."""
        self.final = self.newest = None

    def take(self, error: KafkaError) -> None:
        """Remember a complaint; refused credentials or certificates are final, the rest is tried again."""
        if error.code() in REFUSED_CREDENTIALS | NOT_TRUSTED:
            self.final = self.final or error
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001  says less than what came before
            self.newest = error


def code_of(error: BaseException) -> int:
    """Return librdkafka's code of an error, or 0."""
    cause = error.args[0] if error.args else None
    return int(cause.code()) if isinstance(cause, KafkaError) else 0


def text_of(error: BaseException) -> str:
    """Return an error in the broker's own words, with the name of its code."""
    cause = error.args[0] if error.args else None
    return f"{cause.name()}: {cause.str()}" if isinstance(cause, KafkaError) else str(error)


def is_about_reaching(error: BaseException) -> bool:
    """Return whether an error says that the cluster could not be asked, rather than what it answered."""
    code = code_of(error)
    reachable = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._RESOLVE)  # noqa: SLF001
    brokers = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT_QUEUE, KafkaError._DESTROY)  # noqa: SLF001
    return code in (*reachable, *brokers, *REFUSED_CREDENTIALS, *NOT_TRUSTED, KafkaError.REQUEST_TIMED_OUT)


def is_fenced(error: BaseException) -> bool:
    """Return whether a topic could not be placed because no broker takes part just now.

    That is so for a moment after a freeze or a start of the only broker, and passes. It has the code of a
    replication factor that is too large, which does not pass; only the text tells the two apart.
    """
    return code_of(error) == KafkaError.INVALID_REPLICATION_FACTOR and "fenced" in text_of(error)


def reaching_failure(
    options: KafkaOptions, complaints: Complaints, error: KafkaException, what: str
) -> SinkError:
    """Return our error for a cluster that could not be asked.

    :param what: what it was asked to do, such as ``list the topics``.
    """
    servers, connection = options.bootstrap_servers, f'connection "{options.conn_id}"'
    cause = complaints.final or (error.args[0] if isinstance(error.args[0], KafkaError) else None)
    if cause is not None and cause.code() in REFUSED_CREDENTIALS:
        return AuthenticationError(
            f"Kafka at {servers} refused the credentials",
            cause.str(),
            f"Correct sasl.mechanism, user and password of {connection}; its password field comes first.",
        ).of(options.conn_id)
    if cause is not None and cause.code() in NOT_TRUSTED:
        return AuthenticationError(
            f"Kafka at {servers} did not pass the check of its certificate, or of ours",
            cause.str(),
            f"Correct ssl.ca.location, or the ssl.certificate and ssl.key, in the extra of {connection}.",
        ).of(options.conn_id)
    newest = complaints.newest
    seen = f"{text_of(error)}. " + (f"Last seen: {newest.str()}" if newest else "The broker did not answer.")
    return UnavailableError(
        f"Kafka at {servers} could not {what}",
        seen,
        f"Check bootstrap.servers and security.protocol of {connection}, and that the brokers are up.",
    ).of(options.conn_id)
