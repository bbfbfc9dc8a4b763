"""When a running sink must be launched again for the sake of its connections."""

from __future__ import annotations

import doctest
from collections.abc import Sequence

import pytest

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.connection import follow
from airflow_provider_sinks.core.connection.follow import (
    LAUNCH_SECONDS,
    Following,
    Reading,
    fingerprint,
    unlike,
)

_LATE = LAUNCH_SECONDS + 1
PLAIN = {
    "bootstrap.servers": "kafka:9092",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "sinks",
}


def _after(readings: Sequence[str | None]) -> Following:
    """What is known of one connection, launched with ``a``, after some readings."""
    following = Following({"kafka": "a"}, launched_at_seconds=0)
    for reading in readings:
        following = following.read({"kafka": reading})
    return following


@pytest.mark.parametrize(
    ("readings", "changed"),
    [
        pytest.param([], False, id="never-read"),
        pytest.param(["a", "a", "a"], False, id="the-same"),
        pytest.param(["b"], False, id="new-once"),
        pytest.param(["b", "b"], True, id="new-twice"),
        pytest.param(["a", "b", "b"], True, id="the-same-then-new-twice"),
        pytest.param(["b", "a"], False, id="new-and-back"),
        pytest.param(["b", "b", "a"], False, id="new-twice-and-back"),
        pytest.param(["b", "a", "b"], False, id="to-and-fro"),
        pytest.param(["b", "c", "d", "e"], False, id="another-at-every-read"),
        pytest.param(["b", "c", "c"], True, id="changed-again-then-stays"),
        pytest.param(["b", "b", "c"], False, id="changed-again-once"),
        pytest.param([None, None, None], False, id="unreadable"),
        pytest.param(["b", None], False, id="new-once-then-unreadable"),
        pytest.param(["b", None, "b"], True, id="new-twice-with-a-gap"),
        pytest.param(["b", "b", None], True, id="new-twice-then-unreadable"),
        pytest.param(["b", None, "c"], False, id="another-after-a-gap"),
    ],
)
def test_changed_is_the_same_new_value_read_twice(readings: list[str | None], changed: bool) -> None:
    assert _after(readings).changed(_LATE) == (("kafka",) if changed else ())


@pytest.mark.parametrize(("at", "changed"), [(0, ()), (LAUNCH_SECONDS - 1, ()), (LAUNCH_SECONDS, ("kafka",))])
def test_at_most_one_launch_a_minute(at: float, changed: tuple[str, ...]) -> None:
    assert _after(["b", "b", "b"]).changed(at) == changed


def test_each_connection_is_judged_for_itself() -> None:
    following = Following({"kafka": "a", "pg": "x", "spare": "s"}, 0)
    for _ in range(2):
        following = following.read({"kafka": "b", "pg": "x", "spare": "t"})

    assert following.changed(_LATE) == ("kafka", "spare")


@pytest.mark.parametrize(
    ("got", "now", "differ"),
    [
        pytest.param({"kafka": "1"}, {"kafka": "1"}, (), id="the same"),
        pytest.param({"kafka": "1"}, {"kafka": "2"}, ("kafka",), id="another"),
        pytest.param({}, {"kafka": "2"}, (), id="what the driver got is not known"),
        pytest.param({"kafka": "1"}, {}, (), id="what stands now is not known"),
        pytest.param({"kafka": "1", "pg": "x"}, {"kafka": "2", "pg": "x"}, ("kafka",), id="one of two"),
    ],
)
def test_who_did_not_see_what_the_driver_got_compares_what_is_no_secret(
    got: dict[str, str], now: dict[str, str], differ: tuple[str, ...]
) -> None:
    assert unlike(got, now) == differ


def test_a_reading_tells_secrets_apart_and_shows_none() -> None:
    one, other = (
        Reading.of("kafka", KafkaOptions.from_connection_extra({**PLAIN, "sasl.password": secret}, "kafka"))
        for secret in ("s3cret", "another")
    )

    assert one.fingerprint != other.fingerprint
    assert one.visible == other.visible
    assert "s3cret" not in repr(one)


def test_a_fingerprint_tells_values_apart_and_nothing_else() -> None:
    assert fingerprint("secret") == fingerprint("secret") != fingerprint("secret2")
    assert "secret" not in fingerprint("secret")


def test_the_examples_hold() -> None:
    assert doctest.testmod(follow).failed == 0
