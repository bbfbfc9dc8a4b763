"""An attack by the forms that run a sink once: their fields name no server, and only what is offered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_sinks.clients.airflow_api import ApiAnswerError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.airflow.desk import Define, Desk
from tests.airflow.fakes import KAFKA, FakeSpark, status
from tests.airflow_side import _process
from tests.listening_broker import Listener, listening_broker, listening_database

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow_side import RunTask

DAGS = Path(__file__).parents[2] / "dags"
LAKES = {
    "iceberg": {"target_connection": "lake_prod", "target": "a.b"},
    "delta": {"target": "s3://bucket/a", "storage": "s3_prod"},
}
TOPIC, TABLE = "run_sink_once", "run_sink_once_into_a_table"
SECRET = "the password of a connection that is not offered"
SERVER, HOST = "{server}", "{host}"
AS_SERVERS = [SERVER, f"kafka://{SERVER}", f"postgresql://{SERVER}/shop", f"{SERVER}/orders", HOST]


@dataclass(frozen=True)
class Attackers:
    """The servers of who fills in the form."""

    broker: Listener
    database: Listener

    def filled(self, text: str) -> list[str]:
        """Return a text with the address of each of them."""
        return [text.format(server=one.address, host=one.host) for one in (self.broker, self.database)]


@pytest.fixture
def attackers() -> Iterator[Attackers]:
    """They hear nothing, whatever a test does."""
    with ExitStack() as stack:
        found = Attackers(stack.enter_context(listening_broker()), stack.enter_context(listening_database()))
        yield found
        assert (found.broker.visits, found.database.visits) == (0, 0)


@pytest.fixture
def forms() -> dict[str, DAG]:
    """The shipped forms, and beside each one that offers any connection."""
    from airflow.dag_processing.dagbag import DagBag

    from airflow_provider_sinks.forms import run_sink_once_dag

    shipped = DagBag(str(DAGS / "run_sink_once.py")).dags
    values = {form: {name: param.value for name, param in shipped[form].params.items()} for form in shipped}
    given = {form: {k: v for k, v in found.items() if v is not None} for form, found in values.items()}
    more = {
        f"{form}_of_any": run_sink_once_dag(f"{form}_of_any", target=target, values=given[form])
        for form, target in ((TOPIC, "kafka"), (TABLE, "postgres"))
    }
    source = {name: given[TOPIC][name] for name in ("sink", "connection", "source", "schema", "where")}
    lakes = {
        kind: run_sink_once_dag(f"run_sink_once_into_{kind}", target=kind, values={**source, **own})
        for kind, own in LAKES.items()
    }
    return {**shipped, **more, **lakes}


@pytest.fixture
def offered(connections: Define, attackers: Attackers) -> None:
    """What the forms offer, and two connections that they do not."""
    broker, database = attackers.broker, attackers.database
    login = {"sasl.username": "other", "sasl.password": SECRET, "security.protocol": "sasl_plaintext"}
    servers = {"bootstrap.servers": broker.address, "sasl.mechanism": "PLAIN"}
    fields = {"login": "other", "password": SECRET, "schema": "shop"}
    connections(
        kafka_prod=KAFKA,
        pg_prod={"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "login": "a", "schema": "b"},
        kafka_other={"conn_type": "kafka", "extra": {**servers, **login}},
        pg_other={"conn_type": "postgres", "host": database.host, "port": database.port, **fields},
    )


def refusal(desk: Desk, form: DAG, **filled: str) -> str:
    """Fill in a form and return why Airflow's API does not take it."""
    with pytest.raises(ApiAnswerError) as refused:
        desk.api.call("POST", f"dags/{form.dag_id}/dagRuns", {"logical_date": None, "conf": filled})
    assert refused.value.status == 400
    return str(refused.value.detail)


@pytest.mark.parametrize(
    ("form", "field"),
    [(TOPIC, "connection"), (TABLE, "connection"), (TABLE, "target_connection")],
)
@pytest.mark.usefixtures("offered")
def test_a_connection_that_is_not_offered_is_refused(
    desk: Desk, forms: dict[str, DAG], attackers: Attackers, form: str, field: str
) -> None:
    _process(forms[form])

    servers = [written for one in AS_SERVERS for written in attackers.filled(one)]
    for written in ["kafka_other", "pg_other", *servers]:
        assert written in refusal(desk, forms[form], **{field: written})


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (f"{TOPIC}_of_any", "connection"),
        (f"{TABLE}_of_any", "connection"),
        (f"{TABLE}_of_any", "target_connection"),
        (f"{TOPIC}_of_any", "source"),
        (f"{TABLE}_of_any", "source"),
        (f"{TOPIC}_of_any", "target"),
        (f"{TOPIC}_of_any", "sink"),
        (f"{TABLE}_of_any", "sink"),
        ("iceberg", "target_connection"),
        ("iceberg", "connection"),
        ("delta", "storage"),
        ("delta", "connection"),
    ],
)
def test_no_field_takes_an_address(
    desk: Desk, forms: dict[str, DAG], attackers: Attackers, form: str, field: str
) -> None:
    _process(forms[form])

    for one in AS_SERVERS[:-1]:  # a name of a host alone may be the id of a connection, or a topic
        for written in attackers.filled(one):
            assert written in refusal(desk, forms[form], **{field: written})


@pytest.mark.parametrize("form", [f"{TOPIC}_of_any", f"{TABLE}_of_any"])
@pytest.mark.usefixtures("offered")
def test_a_host_is_looked_up_as_a_connection_and_found_to_be_none(
    run_task: RunTask, forms: dict[str, DAG], spark: FakeSpark, attackers: Attackers, form: str
) -> None:
    spark.play(statuses=[status(state="stopped")])
    given = {name: param.value for name, param in forms[form].params.items()}

    result = run_task(forms[form].get_task("submit"), conf={**given, "connection": attackers.broker.host})

    assert result.ti.state == "failed"
    assert f"{attackers.broker.host}: does not exist" in str(result.error)
    assert not (spark.folder / "seen.json").exists()


BREAKS_OUT = '"}}, "source": {{"kafka": {{"connection": "kafka_other", "topic": "a"}}}}, "": {{"": "{server}'


@pytest.mark.parametrize("form", [TOPIC, TABLE])
@pytest.mark.usefixtures("offered")
def test_what_is_written_into_a_field_of_sql_stays_there(
    run_task: RunTask, forms: dict[str, DAG], spark: FakeSpark, attackers: Attackers, form: str
) -> None:
    spark.play(statuses=[status(state="stopped")])
    given = {name: param.value for name, param in forms[form].params.items()}
    for text in attackers.filled(BREAKS_OUT):
        where = f"button = '{text}{{{{ conn.kafka_other.password }}}}'"

        result = run_task(forms[form].get_task("submit"), conf={**given, "where": where})

        assert result.ti.state == "success", str(result.error)
        spec = SinkSpec.parse(spark.seen["launch"]["spec"])
        assert spec.where == where
        assert spec.source.kafka.connection == "kafka_prod"
        assert SECRET not in json.dumps(spark.seen)
