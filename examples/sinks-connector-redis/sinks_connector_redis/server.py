"""The server: a client that never repeats a command by itself, and its errors as a sink knows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from airflow_provider_sinks.core.errors import AuthenticationError, UnavailableError
from sinks_connector_redis.options import RedisOptions

VERSION_MIN = (6, 2)
DURABILITY_HINT = (
    "appendonly yes and appendfsync always; else a crash of the server may take back rows and progress"
)
_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 60.0


@contextmanager
def client(options: RedisOptions) -> Iterator[redis.Redis]:
    """Give a client, and close it."""
    made = make_client(options)
    try:
        yield made
    finally:
        made.close()


def make_client(options: RedisOptions) -> redis.Redis:
    """Return a client, which connects with its first command.

    A command that redis-py repeated on its own would hide that its first answer was lost.
    """
    given = options.given
    return redis.Redis(
        host=given["host"],
        port=int(given["port"]),
        db=int(given["db"]),
        username=given.get("login"),
        password=given.get("password"),
        protocol=2,
        socket_connect_timeout=_CONNECT_SECONDS,
        socket_timeout=_ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


@contextmanager
def answering(options: RedisOptions) -> Iterator[None]:
    """Tell errors of the client as what they are to a sink.

    :raises AuthenticationError: the login is refused, or may not do this.
    :raises UnavailableError: no answer, or the server says that it cannot do this now.
    """
    try:
        yield
    except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise AuthenticationError(
            f"Redis at {options.summary} refused the login of a sink",
            str(error),
            "See the rights in the README.",
        ) from error
    except redis.RedisError as error:
        raise UnavailableError(f"Redis at {options.summary} did not do it", str(error)) from error


def version(asked: redis.Redis, options: RedisOptions) -> tuple[int, ...]:
    """Return the version of the server, as far as it says that it is a Redis."""
    with answering(options):
        told = str(asked.info("server")["redis_version"])
    return tuple(int(part) for part in told.split(".") if part.isdigit())


def durability_doubt(asked: redis.Redis, options: RedisOptions) -> str:
    """Return why what the server acknowledges may be lost in a crash of it; empty where it may not."""
    try:
        with answering(options):
            found = {**asked.config_get("appendonly"), **asked.config_get("appendfsync")}
    except AuthenticationError as error:
        return f"its configuration may not be seen ({error.detail})"
    if found.get("appendonly") != "yes":
        return "it writes no append-only file"
    fsync = found.get("appendfsync")
    return "" if fsync == "always" else f"it acknowledges before its disk does (appendfsync {fsync})"
