"""An act of the demo: Avro with a schema registry, a change that is refused, and dead letters that come back.

The sink writes amounts as ``int``, and two orders have a fraction, so they are set aside. Somebody proposes
to write amounts as text, by which nobody could read what is there: ``airflow sinks plan`` says so of the DAG
file before Airflow ever sees it. By ``double`` both can be read; the file is changed so, and a form replays
the letters. What stands in the topic then is read by confluent-kafka alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from airflow_provider_sinks.clients.wait import look_until
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.stack import Stack
from scripts.demo import pageviews
from scripts.demo.act import Act
from scripts.demo.audit import read_committed
from scripts.demo.runs import run_dag
from scripts.demo.say import quote, step

SINK, SOURCE, TARGET = "orders_avro", "orders", "orders-avro"
ORDERS = 1000
_FRACTION_EVERY = 500
_FORM = "replay_dead_letters"
_FORM_TASKS = ("plan", "not_a_dry_run", "approve", "begin", "submit")
_PROPOSED = ('"amount"]', '"CAST(amount AS string) AS amount"]')
_MENDED = ("amount int", "amount double")
_READ_SECONDS = 120.0


def fill(stack: Stack) -> None:
    """Make the source, and have the registry ask of each schema that it reads what the one before wrote."""
    pageviews.create_topic(stack.broker, SOURCE)
    producer = Producer(pageviews.quiet(stack.broker))
    for order in _orders():
        producer.produce(SOURCE, json.dumps(order), str(order["id"]))
    if left := producer.flush(30.0):
        raise LocalServiceError(f"{left:,} of {ORDERS:,} orders were not written")
    SchemaRegistryClient({"url": stack.registry.url}).set_compatibility(level="BACKWARD")


def change_a_schema(stack: Stack, *, after: Act[object]) -> None:
    """Run the sink, propose a change that is refused, make one that is not, and replay what was set aside.

    :param after: the act whose end it starts after.
    """
    after.result()
    run_dag(stack, SINK)
    file = stack.airflow.dags_folder / f"{SINK}.py"
    quote(_refusal(stack, _changed(file, *_PROPOSED)))
    _put_in_place(stack, file, _changed(file, *_MENDED))
    run = run_dag(stack, _FORM, tasks=_FORM_TASKS, form={"sink": SINK, "dry_run": False})
    quote(text for text in stack.airflow.task_events(run, "plan") if "replays dead letters" in text)
    _audit(stack)


def _orders() -> Iterator[dict[str, Any]]:
    for number in range(ORDERS):
        amount = number + 0.5 if number % _FRACTION_EVERY == 0 else number
        yield {"id": number, "what": f"Page_{number}", "amount": amount}


def _changed(file: Path, old: str, new: str) -> str:
    """Return a DAG file with a change."""
    text = file.read_text()
    if old not in text:
        raise LocalServiceError("the DAG is not what it was", f"{old} does not stand in {file}.")
    return text.replace(old, new)


def _refusal(stack: Stack, proposed: str) -> Sequence[str]:
    """Return why a proposed file is refused: what a pull request would show."""
    folder = stack.folder / "proposed"
    folder.mkdir()
    (folder / f"{SINK}.py").write_text(proposed)
    with step(f"airflow sinks plan {SINK} -F {folder.name}") as line:
        said = stack.airflow.command("sinks", "plan", SINK, "-F", str(folder), code=ExitCode.CONFIGURATION)
        line.leave(f"refused, exit code {ExitCode.CONFIGURATION.value}")
    return [text for text in said.splitlines() if text.strip().startswith("refused: ")]


def _put_in_place(stack: Stack, file: Path, text: str) -> None:
    """Change a DAG file, and return when Airflow has read it."""
    before = stack.airflow.last_parsed(SINK)
    with step(f"{file.name}: {_MENDED[1]}") as line:
        file.write_text(text)
        now = look_until(
            lambda: stack.airflow.last_parsed(SINK),
            lambda seen: seen != before,
            _READ_SECONDS,
            pause_seconds=0.5,
        )
        if now == before:
            raise LocalServiceError(f"Airflow did not read {file.name} again")
        line.leave("Airflow has read it")


def _audit(stack: Stack) -> None:
    with step("Audit") as line:
        client = SchemaRegistryClient({"url": stack.registry.url})
        read, context = AvroDeserializer(client), SerializationContext(TARGET, MessageField.VALUE)
        messages = read_committed(stack.broker, TARGET)
        found = Counter(json.dumps(read(message.value(), context), sort_keys=True) for message in messages)
        wanted = Counter(json.dumps(order, sort_keys=True) for order in _orders())
        versions = len(client.get_versions(f"{TARGET}-value"))
        line.leave(
            f"{found.total():,} orders out of {wanted.total():,}, by {versions} versions of their schema"
        )
    if found != wanted:
        raise LocalServiceError("the target is not what it should be", str((wanted - found, found - wanted)))
