"""An alteration whose Variable is deleted or changed before a retry: nothing is lost, nothing false told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from airflow_provider_sinks.core.alter.changes import Secret, SetOption
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.alter.steps import End
from airflow_provider_sinks.core.errors import ConfigurationError
from tests.airflow.altering import (
    CONN_ID,
    NEW,
    OLD,
    OPTIONS,
    SECRET,
    Altering,
    CutStore,
    KilledError,
    played,
)

GIVEN = "a secret of the new options"
VARIABLE = "sinks_secret_given"
PASSWORD = SetOption("sasl.password", Secret(VARIABLE))
WHOLE = {**OPTIONS, "bootstrap.servers": NEW, "sasl.password": GIVEN}

Define = Callable[..., None]


@pytest.fixture
def altering(airflow_url: str, connections: Define, monkeypatch: pytest.MonkeyPatch) -> Iterator[Altering]:
    with played(airflow_url, connections, monkeypatch) as altering:
        altering.leave = Leave()
        altering.changes += (PASSWORD,)
        put(altering, GIVEN)
        yield altering
        delete(altering)


def put(altering: Altering, value: str) -> None:
    """Make the Variable, or give it another value."""
    body = {"key": VARIABLE, "value": value}
    if altering.api.find(f"variables/{VARIABLE}"):
        altering.api.call("PATCH", f"variables/{VARIABLE}", body)
    else:
        altering.api.call("POST", "variables", body)


def delete(altering: Altering) -> None:
    """Delete the Variable."""
    if altering.api.find(f"variables/{VARIABLE}"):
        altering.api.call("DELETE", f"variables/{VARIABLE}")


def rotate(altering: Altering) -> None:
    put(altering, "a secret of tomorrow")


def kill(altering: Altering, cut: int, *, after: bool = True) -> None:
    with pytest.raises(KilledError):
        altering.try_once(store=CutStore(altering.api, cut, after=after))


@pytest.mark.parametrize("meanwhile", [delete, rotate], ids=["deleted", "changed"])
@pytest.mark.parametrize(
    ("cut", "usable"),
    [(2, (OLD, NEW)), (2, (OLD,)), (3, (OLD,)), (4, (OLD,))],
    ids=["changed-and-it-works", "changed-and-it-is-undone", "marked", "put-back"],
)
def test_cut_behind_the_change_a_retry_needs_no_variable(
    altering: Altering, cut: int, usable: tuple[str, ...], meanwhile: Callable[[Altering], None]
) -> None:
    altering.sinks[1].usable = usable
    kill(altering, cut)
    meanwhile(altering)

    last = altering.try_once(is_retry=True)

    assert last.end is (End.ALTERED if NEW in usable else End.UNDONE)
    assert altering.now.extra == (WHOLE if NEW in usable else OPTIONS)
    assert last.changed == ("bootstrap.servers", "sasl.password")
    assert altering.before is None
    assert all(sink.runs for sink in altering.sinks)


def test_cut_before_the_change_a_deleted_variable_is_told_and_nothing_is_left(altering: Altering) -> None:
    kill(altering, 2, after=False)
    delete(altering)

    with pytest.raises(ConfigurationError, match="was not altered") as refused:
        altering.try_once(is_retry=True)

    assert f"names the Variable '{VARIABLE}', which is not there" in refused.value.detail
    assert (altering.now.extra, altering.before) == (OPTIONS, None)


def test_cut_before_the_change_the_variable_counts_as_it_is_now(altering: Altering) -> None:
    kill(altering, 2, after=False)
    rotate(altering)

    assert altering.try_once(is_retry=True).end is End.ALTERED
    assert altering.now.extra == {**WHOLE, "sasl.password": "a secret of tomorrow"}


def test_a_variable_that_has_the_old_secret_now_leaves_nothing_to_change(altering: Altering) -> None:
    altering.changes = (PASSWORD,)
    kill(altering, 2, after=False)
    put(altering, SECRET)

    assert altering.try_once(is_retry=True, seconds=0.2).end is End.UNCHANGED
    assert altering.before is None


def test_the_same_secret_given_anew_is_known_again(altering: Altering) -> None:
    put(altering, SECRET)
    kill(altering, 2)
    rotate(altering)

    assert altering.try_once(is_retry=True).end is End.ALTERED
    assert altering.now.extra == {**OPTIONS, "bootstrap.servers": NEW}


@pytest.mark.parametrize("cut", [2, 3], ids=["ours", "undoing"])
@pytest.mark.parametrize(
    "edited",
    [{"client.id": "edited", "sasl.password": GIVEN}, {"sasl.password": " "}],
    ids=["another-option", "no-secret-any-more"],
)
def test_an_edit_between_two_tries_is_seen_without_the_variable(
    altering: Altering, cut: int, edited: dict[str, str]
) -> None:
    altering.sinks[1].usable = (OLD,)
    kill(altering, cut)
    delete(altering)
    theirs = {"bootstrap.servers": NEW, **edited}
    altering.edit(**theirs)

    assert altering.try_once(is_retry=True).end is End.OVERTAKEN
    assert altering.now.extra == {**OPTIONS, **theirs}


def test_a_secret_that_somebody_corrected_between_two_tries_stays(altering: Altering) -> None:
    kill(altering, 2)
    delete(altering)
    altering.edit(**{"bootstrap.servers": NEW, "sasl.password": "corrected"})

    assert altering.try_once(is_retry=True).end is End.ALTERED
    assert altering.now.extra == {**WHOLE, "sasl.password": "corrected"}


def test_the_way_back_is_not_judged(altering: Altering) -> None:
    altering.sinks[1].usable = (OLD,)
    kill(altering, 3)
    altering.leave = Leave(secret_prefix="another_")

    assert altering.try_once(is_retry=True).end is End.UNDONE
    assert (altering.now.extra, altering.before) == (OPTIONS, None)


def test_what_cannot_go_on_behind_the_change_says_what_holds_the_old_options(altering: Altering) -> None:
    kill(altering, 2)
    altering.leave = Leave(secret_prefix="another_")

    with pytest.raises(ConfigurationError, match="has begun and cannot go on") as refused:
        altering.try_once(is_retry=True)

    assert "was not altered" not in str(refused.value)
    assert "sasl.password: names a Variable that does not begin with another_" in refused.value.detail
    assert f"connection {CONN_ID}.before holds the old options" in refused.value.detail
    assert f"whether the options of {CONN_ID}.before must come back" in refused.value.hint
    assert (altering.servers, altering.before is None) == (NEW, False)


def test_a_connection_that_is_gone_is_told_with_what_holds_its_options(altering: Altering) -> None:
    kill(altering, 2)
    altering.api.call("DELETE", f"connections/{CONN_ID}")

    with pytest.raises(ConfigurationError, match="has begun and cannot go on") as refused:
        altering.try_once(is_retry=True)

    assert f"connection {CONN_ID}.before holds the old options" in refused.value.detail
    assert altering.before is not None
