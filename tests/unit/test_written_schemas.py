"""What a job knows of the schemas of its source's records: no id ends a sink, nor holds it up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_sinks.clients.schema_registry import confluent
from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.schema_registry.source_schemas import ReaderSchema
from airflow_provider_sinks.core.errors import ConfigurationError, JobFailedError
from airflow_provider_sinks.core.evolution import OnSchemaChange
from airflow_provider_sinks.core.schemas.avro import parse
from airflow_provider_sinks.core.schemas.languages import RegisteredSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.source import SourceEnvelope
from airflow_provider_sinks.streaming import written_schemas
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.written_schemas import UNKNOWN_MAX, WrittenSchemas
from tests.answering_registry import NOT_FOUND, Answers, answering

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
BASKET = json.dumps({"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "Order"}]})
OTHER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "what", "type": "string"}]})
TOO_DEEP = 600 * '{"type": "array", "items": ' + '"int"' + 600 * "}"
REFERENCE = {"name": "Order", "subject": "orders", "version": 7}


@pytest.fixture
def answers() -> Iterator[Answers]:
    """A registry by HTTP."""
    with answering() as made:
        yield made


@pytest.fixture
def written(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> Iterator[WrittenSchemas]:
    """What a job knows that reads orders; it does not wait for ids that may turn up."""
    monkeypatch.setattr(written_schemas, "WAIT_SECONDS", 0.0)
    monkeypatch.setitem(confluent._PATIENCE, "max.retries", 0)
    reader = ReaderSchema(Part.VALUE, parse(ORDER), "a test", "orders-value")
    registry = SchemaRegistry(RegistryOptions("r", {"url": answers.url}))
    with closing(WrittenSchemas(registry, [reader], Patience(timedelta(seconds=1)))) as made:
        yield made


def met(schema_id: int) -> Exception:
    """Return how a task fails that met an id."""
    return RuntimeError(f"[USER_RAISED_EXCEPTION] sinks: a value has schema id {schema_id} SQLSTATE: P0001")


def told(written: WrittenSchemas, schema_id: int) -> RegisteredSchema | str:
    """Return what is known of an id."""
    return written.known(Part.VALUE).by_id[schema_id]


def test_a_schema_is_asked_for_once(written: WrittenSchemas, answers: Answers) -> None:
    answers.by_path["/schemas/ids/1"] = 200, {"schema": ORDER}

    assert written.learns(met(1))
    assert not written.learns(met(1))
    assert told(written, 1) == parse(ORDER)
    assert answers.ids() == [1]


def test_an_error_that_names_no_schema_teaches_nothing(written: WrittenSchemas) -> None:
    assert not written.learns(RuntimeError("out of memory"))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (NOT_FOUND, "does not know"),
        ((200, {"schema": "{}", "schemaType": "JSON"}), "which is of kind JSON"),
        ((200, {"schema": "syntax", "schemaType": "PROTOBUF"}), "which is of kind PROTOBUF"),
        ((200, {"schema": '{"type": "nothing"}'}), "which is no schema"),
        (
            (200, {"schema": BASKET, "references": [REFERENCE]}),
            'which is no schema: Order: subject "orders" has no version 7',
        ),
        ((200, {"schema": TOO_DEEP}), "more than 100 types inside each other"),
        ((200, {"schema": OTHER}), "which cannot be read: field id is missing"),
        ((422, {"error_code": 42201, "message": "Invalid id"}), "Invalid id (error code 42201)"),
        ((400, {"error_code": 400, "message": "Bad id"}), "Bad id (error code 400)"),
    ],
    ids=[
        "unknown",
        "JSON",
        "Protobuf",
        "no Avro",
        "refers to what is away",
        "without end",
        "other fields",
        "refused",
        "bad",
    ],
)
def test_what_is_wrong_with_one_id_is_why_its_records_are_set_aside(
    written: WrittenSchemas, answers: Answers, answer: tuple[int, Any], why: str
) -> None:
    answers.by_path["/schemas/ids/7"] = answer

    assert written.learns(met(7))

    reason = told(written, 7)
    assert isinstance(reason, str)
    assert reason.startswith("has schema id 7")
    assert why in reason
    assert "\n" not in reason


def test_a_server_that_is_no_registry_ends_the_sink(written: WrittenSchemas, answers: Answers) -> None:
    answers.by_path["/schemas/ids/7"] = 400, ["something else"]

    with pytest.raises(ConfigurationError, match="did not give the schema with id 7"):
        written.learns(met(7))


def test_an_epoch_asks_for_so_many_unknown_ids_and_then_for_none(
    written: WrittenSchemas, answers: Answers
) -> None:
    for schema_id in range(UNKNOWN_MAX):
        assert not written.known(Part.VALUE).others
        assert written.learns(met(schema_id))

    others = written.known(Part.VALUE).others
    assert f"did not know {UNKNOWN_MAX} others of the same epoch" in others
    assert answers.url in others
    written.epoch_is_whole()
    assert not written.known(Part.VALUE).others


def test_ids_that_are_known_count_as_none(written: WrittenSchemas, answers: Answers) -> None:
    for schema_id in range(3 * UNKNOWN_MAX):
        answers.by_path[f"/schemas/ids/{schema_id}"] = 200, {"schema": ORDER}
        assert written.learns(met(schema_id))

    assert not written.known(Part.VALUE).others


def test_what_is_not_known_is_forgotten_between_epochs_only(
    written: WrittenSchemas, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_schemas, "FORGET_SECONDS", -1.0)  # each is a while ago
    written.learns(met(1))

    assert "does not know" in str(told(written, 1))
    assert not written.learns(met(1))
    written.epoch_is_whole()
    answers.by_path["/schemas/ids/1"] = 200, {"schema": ORDER}
    assert 1 not in written.known(Part.VALUE).by_id
    assert written.learns(met(1))
    assert told(written, 1) == parse(ORDER)


def test_so_many_unknown_ids_are_remembered(written: WrittenSchemas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_schemas, "_REMEMBERED_MAX", 3)
    for schema_id in range(5):
        written.learns(met(schema_id))
        assert schema_id in written.known(Part.VALUE).by_id

    written.epoch_is_whole()

    assert sorted(written.known(Part.VALUE).by_id) == [2, 3, 4]


def test_a_start_is_not_held_up_by_an_older_version_that_cannot_be_read(
    written: WrittenSchemas, answers: Answers
) -> None:
    versions = {
        "1": {"id": 11, "schema": ORDER},
        "2": {"id": 12, "schema": BASKET, "references": [REFERENCE]},
        "3": {"id": 13, "schema": "{", "schemaType": "JSON"},
    }
    path = "/subjects/orders-value/versions"
    answers.by_path[path] = 200, [1, 2, 3]
    answers.by_path |= {f"{path}/{number}": (200, found) for number, found in versions.items()}

    written.foresee()

    known = written.known(Part.VALUE).by_id
    assert known[11] == parse(ORDER)
    assert 'subject "orders" has no version 7' in str(known[12])
    assert "of kind JSON" in str(known[13])


Following = Callable[[OnSchemaChange], WrittenSchemas]
NEWER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)


@pytest.fixture
def following(answers: Answers) -> Iterator[Following]:
    """What a job knows that reads by the newest version, of which there is a newer one by now."""
    answers.by_path["/schemas/ids/2"] = 200, {"schema": NEWER}
    answers.by_path["/subjects/orders-value/versions/latest"] = 200, {"id": 2, "version": 7, "schema": NEWER}
    reader = ReaderSchema(Part.VALUE, parse(ORDER), "a test", "orders-value", is_newest=True)
    with closing(SchemaRegistry(RegistryOptions("r", {"url": answers.url}))) as registry:
        yield lambda policy: WrittenSchemas(registry, [reader], Patience(timedelta(seconds=1)), policy)


def test_columns_that_the_next_launch_reads_are_told_once(
    following: Following, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(written_schemas, "say", said.append)
    written = following(OnSchemaChange.REFUSE)
    answers.by_path["/schemas/ids/3"] = 200, {"schema": NEWER}

    assert written.learns(met(2))
    assert written.learns(met(3))

    (line,) = said
    assert line == (
        "version 7 of subject \"orders-value\" has 'note', which this launch does not read: "
        "it goes on without; the next one reads by that version"
    )


def test_they_end_the_launch_where_the_target_may_get_them(
    following: Following,
) -> None:
    with pytest.raises(JobFailedError, match="more columns") as ended:
        following(OnSchemaChange.ADD_COLUMNS).learns(met(2))

    assert ended.value.retryable
    assert "Nothing that was written by it is committed." in ended.value.detail
    assert "alters the target as on_schema_change is add_columns" in ended.value.hint


def test_a_version_that_comes_right_behind_the_first_look_is_no_less_seen(
    following: Following, answers: Answers
) -> None:
    answers.by_path["/subjects/orders-value/versions"] = 200, [7]
    answers.by_path["/subjects/orders-value/versions/7"] = 200, {"id": 2, "version": 7, "schema": NEWER}

    with pytest.raises(JobFailedError, match="more columns"):
        following(OnSchemaChange.ADD_COLUMNS).foresee()


def test_of_events_columns_are_those_of_the_rows_in_them(answers: Answers) -> None:
    def event(row: str) -> str:
        return json.dumps(
            {
                "type": "record",
                "name": "Envelope",
                "fields": [
                    {"name": "op", "type": "string"},
                    {"name": "after", "type": ["null", json.loads(row)], "default": None},
                ],
            }
        )

    answers.by_path["/schemas/ids/2"] = 200, {"schema": event(NEWER)}
    newest = {"id": 2, "version": 7, "schema": event(NEWER)}
    answers.by_path["/subjects/orders-value/versions/latest"] = 200, newest
    debezium = SourceEnvelope.DEBEZIUM
    reader = ReaderSchema(
        Part.VALUE, parse(event(ORDER)), "a test", "orders-value", is_newest=True, envelope=debezium
    )
    with closing(SchemaRegistry(RegistryOptions("r", {"url": answers.url}))) as registry:
        written = WrittenSchemas(registry, [reader], Patience(timedelta(seconds=1)), OnSchemaChange.WIDEN)
        with pytest.raises(JobFailedError, match="more columns") as ended:
            written.learns(met(2))

    assert "has 'note'" in ended.value.detail


def test_a_reader_that_is_named_stays_what_it_is(written: WrittenSchemas, answers: Answers) -> None:
    answers.by_path["/schemas/ids/2"] = 200, {"schema": NEWER}

    assert written.learns(met(2))
    assert answers.ids() == [2]
