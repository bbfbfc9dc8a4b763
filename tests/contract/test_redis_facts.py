"""What the Redis connector sees of streams, and what it does about those that are not its own any more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    RefusedError,
    UnavailableError,
)
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.interface import foreign_imports
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, PlayedStart, PlayedTask, rows_of
from tests.contract.redis_harness import SCHEMA, RedisHarness
from tests.installed_connector import REDIS_EXAMPLE, Installed
from tests.redis_server import RedisServer


@pytest.fixture
def harness(installed_redis: Installed, redis_server: RedisServer) -> Iterator[RedisHarness]:
    with installed_redis.found():
        harness = RedisHarness(redis_server)
        yield harness
        for left in harness.made:
            left.close()
        harness.close()


def stream(harness: RedisHarness) -> str:
    return harness.spec().resources[Role.DATA]


def data(harness: RedisHarness) -> ResourceFacts:
    connector = harness.connector()
    try:
        return connector.observe(SOURCE).data
    finally:
        connector.close()


def last_task(start: PlayedStart, **options: Any) -> PlayedTask:
    """Return a task of epoch 2 that has everything but its commit behind it."""
    return PlayedTask(start, 2, 0, SECOND, **options).go_on(until="pre_commit")


# ---- what is seen


def test_a_stream_keeps_its_identity_until_it_is_deleted(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    made = data(harness)
    start.epoch(1, FIRST)
    harness.direct.xtrim(stream(harness), 0, approximate=False)
    emptied = data(harness)
    harness.direct.delete(stream(harness))
    deleted = data(harness)
    PlayedStart(harness).start()

    assert (made.existence, made.is_empty, emptied.is_empty) == (Existence.PRESENT, True, True)
    assert emptied.id == made.id
    assert deleted.existence is Existence.MISSING
    assert data(harness).id not in ("", made.id)


def test_rows_are_told_by_their_size(harness: RedisHarness) -> None:
    PlayedStart(harness).start().epoch(1, FIRST)

    assert 100 < data(harness).size_bytes < 100_000


def test_a_strangers_stream_is_unfit_until_it_is_given_an_identity_as_the_hint_says(
    harness: RedisHarness,
) -> None:
    harness.direct.xadd(stream(harness), {"theirs": "1"})
    before = data(harness)
    assert before.unfit is not None
    command = before.unfit.repair.removeprefix("Give it one: ").partition(",")[0]
    harness.direct.execute_command(*shlex.split(command))

    assert (before.existence, before.id, before.unfit.what) == (
        Existence.PRESENT,
        "",
        "has no identity",
    )
    after = data(harness)
    assert (after.id, after.unfit) == ("adopted-1", None)
    PlayedStart(harness).start().epoch(1, FIRST)
    assert len(harness.read(stream(harness))) == 1 + len(rows_of(FIRST))


@pytest.mark.parametrize("role", [Role.DATA, Role.PROGRESS])
def test_a_key_of_another_type_is_unfit(harness: RedisHarness, role: Role) -> None:
    harness.direct.set(harness.spec().resources[role], "theirs")
    connector = harness.connector()

    seen = connector.observe(SOURCE).resources()[role]
    connector.close()

    assert seen.unfit is not None
    assert seen.unfit.what == "is a string"


# ---- what may go wrong between staging and committing


def test_a_stream_that_is_replaced_in_between_takes_nothing(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    task = last_task(start)
    harness.direct.delete(stream(harness))
    harness.direct.xadd(stream(harness), {"theirs": "1"})

    with pytest.raises(UnavailableError, match="is not the one any more"):
        task.go_on()

    assert harness.read(stream(harness)) == [{"theirs": "1"}]
    assert start.connector.progress().rows_total == len(rows_of(FIRST))


def test_a_stage_that_lost_a_row_is_not_committed(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    task = last_task(start)
    (stage,) = [key for key in harness.all_keys() if key.startswith("progress:stage:")]
    harness.direct.xtrim(f"{harness.begin}:{stage}", 5, approximate=False)

    with pytest.raises(UnavailableError, match="had staged are gone"):
        task.go_on()

    assert harness.visible() == rows_of(FIRST)


def test_rows_that_were_added_are_taken_back_where_a_later_one_is_refused(harness: RedisHarness) -> None:
    """A script is no transaction: what it has done before it fails stays done, unless it undoes it."""
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    task = last_task(start, bad=[25])
    last = "18446744073709551615-18446744073709551615"  # no entry can follow it
    harness.direct.xadd(f"{stream(harness)}:dead", {"source_partition": "9", "source_offset": "9"}, id=last)

    with pytest.raises(UnavailableError, match="took no rows"):
        task.go_on()

    assert harness.visible() == rows_of(FIRST)
    assert harness.set_aside() == [(9, 9)]
    assert start.connector.progress().rows_total == len(rows_of(FIRST))


def test_a_login_that_may_not_write_is_told_and_nothing_is_written(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    user = harness.begin
    harness.direct.execute_command("ACL", "SETUSER", user, "on", ">word", "~*", "+@all", "-xadd")
    task = PlayedTask(start, 1, 0, FIRST)
    task.start.factory = replace(start.factory, options=limited(harness, user))  # type: ignore[type-var]

    with pytest.raises(AuthenticationError, match="refused the login"):
        task.go_on()

    assert harness.visible() == []
    harness.direct.execute_command("ACL", "DELUSER", user)


def limited(harness: RedisHarness, user: str) -> Any:
    return replace(harness.fields, login=user, password="word").options()


def test_nothing_is_left_of_stages_behind_commits_rollbacks_and_sweeps(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    given_up = last_task(start)
    given_up.writer.rollback_epoch()
    clean = harness.all_keys()
    last_task(start)  # and its process dies
    other = PlayedStart(harness, sink="other").start()
    alive = PlayedTask(other, 1, 0, FIRST).go_on(until="pre_commit")

    PlayedStart(harness).start()
    alive.go_on()

    assert clean == {"progress", SINK, f"{SINK}:dead"}
    assert harness.all_keys() == {*clean, "other", "other:dead"}
    assert harness.visible("other") == rows_of({0: FIRST[0]})


# ---- what is written


def test_values_stand_in_the_stream_as_they_are_and_nulls_are_left_out(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    given = pa.RecordBatch.from_pylist(
        [
            {rows.PARTITION: 0, rows.OFFSET: 0, "part": "ünï\n", "at": "", "what": "\0"},
            {rows.PARTITION: 0, rows.OFFSET: 1, "part": "1"},
            {rows.PARTITION: 0, rows.OFFSET: 2},
        ],
        SCHEMA,
    )
    task = PlayedTask(start, 1, 0, {0: range(3)}).go_on(until="begin_epoch")
    task.writer.write_batch(given)
    task.writer.pre_commit(start.record(1, {0: 0, 1: 0}, {0: 3, 1: 0}, rows=3, rows_total=3))
    task.writer.commit_epoch()

    assert harness.read(stream(harness)) == [
        {"part": "ünï\n", "at": "", "what": "\0"},
        {"part": "1"},
        {"": ""},
    ]


def test_a_dead_letter_tells_where_it_comes_from(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    start.epoch(1, {0: range(3)}, bad=[1])

    (letter,) = harness.read(f"{stream(harness)}:dead")

    assert letter == {
        "sink": SINK,
        "source_topic": SOURCE.name,
        "generation": "1",
        "epoch": "1",
        "error": "no JSON",
        "source_partition": "0",
        "source_offset": "1",
        "value": "as it came",
    }


def test_a_stream_with_a_length_keeps_about_its_newest_entries(
    installed_redis: Installed, redis_server: RedisServer
) -> None:
    with installed_redis.found():
        harness = RedisHarness(redis_server, max_length=100)
        start = PlayedStart(harness).start()
        for epoch in range(1, 6):
            start.epoch(epoch, {0: range(epoch * 200 - 200, epoch * 200)})

        kept = harness.visible()
        start.connector.close()
        harness.close()

    assert 100 <= len(kept) < 400
    assert kept == [(0, at) for at in range(1000 - len(kept), 1000)]


# ---- a reset


def test_a_reset_empties_or_deletes_only_what_was_looked_at(harness: RedisHarness) -> None:
    start = PlayedStart(harness).start()
    start.epoch(1, FIRST)
    seen = data(harness)

    with pytest.raises(RefusedError, match="is not the one any more"):
        start.connector.reset(EmptyOutput(Role.DATA, replace(seen, id="another")))
    assert harness.visible() == rows_of(FIRST)
    start.connector.reset(EmptyOutput(Role.DATA, seen))
    assert (harness.visible(), data(harness).id) == ([], seen.id)
    for _ in range(2):
        start.connector.reset(DeleteOutput(Role.DATA, seen))
    assert data(harness).existence is Existence.MISSING


# ---- the server and the connection


def test_a_server_that_may_lose_what_it_acknowledged_is_told_of(
    installed_redis: Installed, tmp_path: Path
) -> None:
    with installed_redis.found(), RedisServer.started(tmp_path / "lazy", appendfsync="everysec") as lazy:
        harness = RedisHarness(lazy)
        PlayedStart(harness).open().connector.close()
        report = validate({"redis": lazy.connection()}, harness.spec())
        harness.close()

    assert (
        "may lose what it acknowledged: it acknowledges before its disk does (appendfsync everysec)"
        in str(harness.said)
    )
    (check,) = [check for check in report.checks if check.name == "durability"]
    assert check.outcome is Outcome.UNKNOWN


def test_a_validation_judges_server_and_keys_and_changes_nothing(harness: RedisHarness) -> None:
    new = validate({"redis": harness.fields, "k": away()}, harness.spec())
    untouched = harness.all_keys()
    harness.direct.set(stream(harness), "theirs")
    taken = validate({"redis": harness.fields, "k": away()}, harness.spec())
    refused = validate({"redis": replace(harness.fields, password="wrong")})

    title = f'data table "{stream(harness)}"'
    assert untouched == set()
    assert {check.name: check.outcome for check in new.checks if check.subject == "redis"} == {
        "options": "pass",
        "server": "pass",
        "durability": "pass",
        title: "pass",
        f'progress table "{harness.begin}:progress"': "pass",
        f'dead-letter table "{stream(harness)}:dead"': "pass",
    }
    assert [(check.name, check.detail) for check in taken.failed if check.subject == "redis"] == [
        (title, "is a string: A sink needs a stream there.")
    ]
    (check,) = refused.failed
    assert (check.name, check.retryable) == ("server", False)
    assert "wrong" not in check.detail.replace("WRONGPASS", "")


def away() -> ConfigurationError:
    return ConfigurationError("not asked here")


def test_all_that_is_wrong_with_a_connection_is_told_at_once(harness: RedisHarness) -> None:
    given = replace(harness.fields, host="redis://h", port=70000, extra={"ssl": True, "dbs": 1})

    with pytest.raises(ConfigurationError) as refused:
        given.options()

    told = refused.value.detail
    assert "host: is not one host" in told
    assert "port: 70000 is out of range" in told
    assert "extra.ssl: is refused: TLS is not part of this example" in told
    assert 'extra.dbs: is not known (did you mean "db"?)' in told


def test_no_repr_shows_the_password(harness: RedisHarness, redis_server: RedisServer) -> None:
    start = PlayedStart(harness).start()

    assert redis_server.password not in repr((harness.fields, harness.fields.options(), start.factory))


def test_options_that_make_no_sense_are_refused(harness: RedisHarness) -> None:
    target = {"redis": {"connection": "redis", "stream": "a b", "key": ["id"]}}

    with pytest.raises(ConfigurationError) as refused:
        type(harness.spec()).parse({"name": "o", "source": "k/orders", "target": target})
    target = {"redis": {"connection": "redis", "stream": "a", "progress": "a", "key": ["id"]}}
    with pytest.raises(ConfigurationError) as same:
        type(harness.spec()).parse({"name": "o", "source": "k/orders", "target": target})

    assert "target.redis.stream: 'a b' is no key" in refused.value.detail
    assert "target.redis.progress: 'a' is another key of the sink" in same.value.detail
    assert "target.redis.key: is not known" in same.value.detail


def test_it_imports_nothing_but_the_interface() -> None:
    assert foreign_imports(REDIS_EXAMPLE) == []
