"""An alteration by Airflow's real API: what it does, who may, and that no kill leaves half of anything."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
from airflow_provider_sinks.core.alter.backup import Holder
from airflow_provider_sinks.core.alter.changes import DropOption, ResetOption, Secret, SetOption
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.alter.steps import End, Step, Wishes
from airflow_provider_sinks.core.errors import AuthenticationError, ConfigurationError, UnavailableError
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from tests.airflow.altering import (
    CONN_ID,
    NEW,
    OLD,
    OPTIONS,
    SECRET,
    Altering,
    CutStore,
    KilledError,
    PlayedSink,
    played,
)
from tests.airflow.api_server import VIEWER, account

Define = Callable[..., None]


@pytest.fixture
def altering(airflow_url: str, connections: Define, monkeypatch: pytest.MonkeyPatch) -> Iterator[Altering]:
    with played(airflow_url, connections, monkeypatch) as altering:
        yield altering


def test_all_options_change_at_once_and_every_sink_follows(altering: Altering) -> None:
    altering.changes = (
        SetOption("bootstrap.servers", NEW),
        DropOption("client.id"),
        ResetOption("client.dns.lookup"),
    )

    altered = altering.try_once()

    assert altered.end is End.ALTERED
    assert altered.changed == ("bootstrap.servers", "client.id")
    wanted = {name: value for name, value in OPTIONS.items() if name != "client.id"}
    assert altering.now.extra == {**wanted, "bootstrap.servers": NEW}
    assert altering.before is None
    assert [sink.launch for sink in altering.sinks] == [2, 2, 2]
    row = altering.api.find(f"connections/{CONN_ID}")
    assert row is not None
    assert row["description"] == "the description that stays"


def test_a_sink_that_cannot_run_on_the_new_options_puts_all_back(altering: Altering) -> None:
    altering.sinks[1].usable = (OLD,)

    altered = altering.try_once()

    assert altered.end is End.UNDONE
    assert altered.new is not None
    assert {sink: found.detail for sink, found in altered.new.missing.items()} == {"b": "id is denied"}
    assert altered.old is not None
    assert not altered.old.missing
    assert (altering.now.extra, altering.before) == (OPTIONS, None)
    assert all(sink.runs and sink.servers == OLD for sink in altering.sinks)


def test_without_rollback_the_new_options_stay(altering: Altering) -> None:
    altering.sinks[1].usable = (OLD,)

    altered = altering.try_once(Wishes(validate=False, rollback=False))

    assert (altered.end, altering.servers, altering.before) == (End.NOT_UNDONE, NEW, None)


def test_when_the_old_broker_is_gone_too_both_facts_are_told(altering: Altering) -> None:
    altering.sinks[1].usable = (OLD,)
    altering.sinks[2].usable = (NEW,)
    altering.sinks[2].servers = OLD  # it runs from before, and could not start there any more
    altering.sinks[2].__class__ = Stranded

    altered = altering.try_once()

    assert altered.end is End.UNDONE
    assert altered.new is not None
    assert altered.old is not None
    assert (set(altered.new.missing), set(altered.old.missing)) == ({"b"}, {"c"})


class Stranded(PlayedSink):
    """Runs where it is, and is refused by the old address once it left."""

    @property
    def runs(self) -> bool:
        return self.servers in self.usable or self.launch == 1


def test_a_sink_that_does_not_follow_is_not_waited_for(altering: Altering) -> None:
    altering.sinks[0].follows = False

    altered = altering.try_once()

    assert altered.new is not None
    assert set(altered.new.by_sink) == {"b", "c"}
    assert altering.sinks[0].servers == OLD


def test_a_dry_run_prints_what_a_run_does_and_changes_nothing(
    altering: Altering, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    planned = altering.try_once(dry_run=True)
    said = caplog.messages[:]
    caplog.clear()
    untouched = (altering.now.extra, altering.before, [sink.launch for sink in altering.sinks])
    done = altering.try_once()

    assert untouched == (OPTIONS, None, [1, 1, 1])
    assert planned.steps == done.steps == (Step.KEEP, Step.COMMIT, Step.WATCH, Step.FORGET)
    assert said[0] == caplog.messages[0]
    assert "4 of 4  forget     delete connection kafka_altered.before" in said[0]


def test_the_same_again_changes_nothing(altering: Altering) -> None:
    altering.changes = (SetOption("bootstrap.servers", NEW), DropOption("client.id"))
    altering.try_once()

    assert altering.try_once(is_retry=True).end is End.UNCHANGED


def test_a_secret_comes_from_a_variable_and_stands_nowhere_else(
    altering: Altering, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    new = "a secret of the new options"
    altering.api.call("POST", "variables", {"key": "sinks_secret_new", "value": new})
    altering.changes = (SetOption("sasl.password", Secret("sinks_secret_new")),)
    altering.sinks.clear()

    altered = altering.try_once()

    assert dict(altering.now.extra or {})["sasl.password"] == new  # type: ignore[arg-type]
    told = f"{caplog.text}{altered!r}{altering.notes!r}"
    assert SECRET not in told
    assert new not in told


def test_a_retry_waits_for_those_that_were_running_and_says_so(
    altering: Altering, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KilledError):
        altering.try_once(store=CutStore(altering.api, 2, after=True))
    for sink in altering.sinks:
        sink.usable = ()
    caplog.set_level(logging.INFO)

    altered = altering.try_once(is_retry=True, seconds=0.2)

    assert "1 of 2  watch      wait up to 0.2 s until they run on the new options: a, b, c" in caplog.text
    assert "not waited for" not in caplog.text
    assert altered.new is not None
    assert set(altered.new.missing) == {"a", "b", "c"}


def test_two_alter_at_once_one_wins_and_the_other_is_told_who(altering: Altering) -> None:
    with pytest.raises(KilledError):
        altering.try_once(store=CutStore(altering.api, 2))
    other = Altering(altering.api, altering.sinks, (SetOption("client.id", "other"),))

    altered = other.try_once(me=Holder("other", "run 2", "alter"))

    assert altered.end is End.LOCKED
    assert altering.try_once(is_retry=True).end is End.ALTERED


def test_an_edit_between_reading_and_changing_is_left_as_it_is(altering: Altering) -> None:
    class Edited(CutStore):
        def create(self, *arguments: object) -> bool:
            altering.edit(**{"client.id": "edited"})
            return super().create(*arguments)  # type: ignore[arg-type]

    altered = altering.try_once(store=Edited(altering.api))

    assert altered.end is End.OVERTAKEN
    assert altering.now.extra == {**OPTIONS, "client.id": "edited"}
    assert altering.before is None


def test_an_edit_while_sinks_are_waited_for_is_not_rolled_back(altering: Altering) -> None:
    altering.sinks[1].usable = (OLD,)

    class Edited(CutStore):
        def change(self, *arguments: object) -> None:
            super().change(*arguments)  # type: ignore[arg-type]
            altering.sinks[0].__class__ = Editor

    class Editor(PlayedSink):
        def now(self, servers: str) -> object:  # type: ignore[override]
            altering.edit(**{"client.id": "edited"})
            return super().now(servers)

    altered = altering.try_once(store=Edited(altering.api))

    assert altered.end is End.OVERTAKEN
    assert dict(altering.now.extra or {})["client.id"] == "edited"  # type: ignore[arg-type]


def test_a_connection_of_the_environment_is_said_and_not_silently_ignored(
    altering: Altering, connections: Define
) -> None:
    connections(kafka_altered={"conn_type": "kafka", "extra": OPTIONS})

    with pytest.raises(ConfigurationError, match="environment variable AIRFLOW_CONN_KAFKA_ALTERED"):
        altering.try_once()
    assert altering.before is None


def test_a_user_who_may_not_write_is_told_so(
    altering: Altering, airflow_url: str, connections: Define
) -> None:
    connections(airflow_api_default=account(airflow_url, VIEWER))
    with airflow_api() as viewer, pytest.raises(AuthenticationError, match="may not do this"):
        Altering(viewer, altering.sinks).try_once()

    assert (altering.now.extra, altering.before) == (OPTIONS, None)


def test_what_airflow_does_not_take_is_not_quoted(altering: Altering) -> None:
    store = CutStore(altering.api)
    fields = altering.now
    object.__setattr__(fields, "port", SECRET)

    with pytest.raises(ConfigurationError, match="did not take the change") as refused:
        store.change(fields, ["port"])

    assert SECRET not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_retry_judges_by_where_the_secrets_were_stored_for(altering: Altering) -> None:
    altering.api.call("POST", "variables", {"key": "sinks_secret_moved", "value": "another"})
    with pytest.raises(KilledError):
        altering.try_once(store=CutStore(altering.api, 2, after=True))
    altering.leave = Leave()

    with pytest.raises(ConfigurationError, match=r"sasl\.password: must be given anew"):
        altering.try_once(is_retry=True)
    altering.changes += (SetOption("sasl.password", Secret("sinks_secret_moved")),)

    assert altering.servers == NEW
    assert altering.try_once(is_retry=True).end is End.OVERTAKEN


@pytest.mark.parametrize("usable", [(OLD, NEW), (OLD,)], ids=["it-works", "it-is-undone"])
def test_secrets_given_anew_come_and_go_with_the_rest(altering: Altering, usable: tuple[str, ...]) -> None:
    altering.leave = Leave()
    altering.api.call("POST", "variables", {"key": f"sinks_secret_{len(usable)}", "value": "another"})
    given = SetOption("sasl.password", Secret(f"sinks_secret_{len(usable)}"))
    altering.changes = (SetOption("bootstrap.servers", NEW), given)
    altering.sinks[1].usable = usable

    with pytest.raises(KilledError):
        altering.try_once(store=CutStore(altering.api, 2, after=True))
    last = altering.try_once(is_retry=True).end

    new = {**OPTIONS, "bootstrap.servers": NEW, "sasl.password": "another"}
    assert last is (End.ALTERED if NEW in usable else End.UNDONE)
    assert altering.now.extra == (new if NEW in usable else OPTIONS)
    assert altering.before is None


def test_a_password_in_its_field_is_altered_and_put_back_there(altering: Altering) -> None:
    extra = {name: value for name, value in OPTIONS.items() if name != "sasl.password"}
    fields = replace(altering.now, password=SECRET, extra=extra)
    ConnectionStore(altering.api).change(fields, ["password", "extra"])
    altering.api.call("POST", "variables", {"key": "sinks_secret_field", "value": "another"})
    altering.changes += (SetOption("sasl.password", Secret("sinks_secret_field")),)
    altering.sinks[1].usable = (OLD,)

    undone = altering.try_once()
    back = altering.now
    altering.sinks[1].usable = (OLD, NEW)
    altered = altering.try_once()

    assert (undone.end, altered.end) == (End.UNDONE, End.ALTERED)
    assert undone.changed == altered.changed == ("bootstrap.servers", "sasl.password")
    assert (back.password, back.extra) == (SECRET, extra)
    assert (altering.now.password, altering.servers) == ("another", NEW)


@pytest.mark.parametrize("error", [KilledError, UnavailableError], ids=["killed", "api-away"])
@pytest.mark.parametrize("usable", [(OLD, NEW), (OLD,)], ids=["it-works", "it-is-undone"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cut", range(1, 7))
def test_cut_at_any_write_a_retry_ends_wholly_old_or_wholly_new(
    altering: Altering, cut: int, after: bool, usable: tuple[str, ...], error: type[Exception]
) -> None:
    altering.changes = (SetOption("bootstrap.servers", NEW), SetOption("client.id", "new"))
    altering.sinks[1].usable = usable
    store = CutStore(altering.api, cut, after=after, error=error)

    try:
        first: End | None = altering.try_once(store=store).end
    except error:
        first = None
    last = first or altering.try_once(is_retry=True).end

    new = {**OPTIONS, "bootstrap.servers": NEW, "client.id": "new"}
    assert last in (End.ALTERED, End.UNDONE, End.UNCHANGED)
    assert altering.now.extra == (OPTIONS if usable == (OLD,) else new)
    assert altering.before is None
    assert all(sink.runs for sink in altering.sinks)
