"""Validation against a broker that demands a user and grants nothing by itself, and a real Postgres."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    OffsetSpec,
)

from airflow_provider_sinks.connectors.kafka.creation import PROGRESS_CONFIG
from airflow_provider_sinks.connectors.kafka.preflight.reach import WAY
from airflow_provider_sinks.connectors.kafka.preflight.right_checks import Operation
from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import sink_topics
from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.checks.check import Check, Outcome, Report
from airflow_provider_sinks.core.checks.network import Stop
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.listeners import Mechanism, Sasl, Tls
from airflow_provider_sinks.local.postgres import Postgres
from tests import administrator
from tests.acls import grant, least
from tests.certificates import Authority
from tests.installed_connector import register
from tests.support import until

_CANARY = f"canary{uuid.uuid4().hex}"
_PASSWORD = f"""a,b=c"d' {_CANARY}"""


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[KafkaBroker]:
    """A broker with SCRAM, ACLs and TLS, which also makes every topic that a client asks for."""
    pair = authority.sign()
    with KafkaBroker.start(
        tmp_path_factory.mktemp("guarded kafka"),
        sasl=Sasl(Mechanism.SCRAM_SHA_512, {"orders": _PASSWORD}),
        tls=Tls(pair.certificate, pair.key),
        authorizer=True,
        auto_create=True,
    ) as running:
        yield running


@pytest.fixture
def spec() -> SinkSpec:
    name = f"v{uuid.uuid4().hex[:8]}"
    topics = {"source": f"k/{name}-in", "target": f"k/{name}-out", "dead_letter": f"{name}-dead"}
    return SinkSpec.parse({"name": name, **topics})


def connection(broker: KafkaBroker, **changes: str) -> dict[str, ConnectionFields]:
    extra = {**broker.client_config("orders"), **{name.replace("_", "."): v for name, v in changes.items()}}
    return {"k": ConnectionFields("k", "kafka", extra=json.dumps(extra))}


def admin(broker: KafkaBroker) -> AdminClient:
    return AdminClient(broker.client_config())


def create(broker: KafkaBroker, *topics: NewTopic) -> None:
    client = admin(broker)
    for topic in topics:
        administrator.create_topic(client, topic.topic, topic.num_partitions, **(topic.config or {}))


def create_all(broker: KafkaBroker, spec: SinkSpec) -> None:
    policy = dict(PROGRESS_CONFIG)
    create(
        broker, NewTopic(spec.source.kafka.topic, 3), NewTopic(f"{spec.name}-out", 3),
        NewTopic(f"{spec.name}-dead", 1), NewTopic(kafka_sink(spec).progress_topic, 1, config=policy),
    )  # fmt: skip


def named(report: Report) -> dict[str, Check]:
    return {check.name: check for check in report.checks}


def failed(report: Report) -> set[str]:
    return {check.name for check in report.failed}


WANTED = [
    (Operation.READ, Role.SOURCE),
    (Operation.WRITE, Role.DATA),
    (Operation.CREATE, Role.DATA),
    (Operation.WRITE, Role.DEAD_LETTER),
    (Operation.CREATE, Role.DEAD_LETTER),
    (Operation.READ, Role.PROGRESS),
    (Operation.WRITE, Role.PROGRESS),
    (Operation.DESCRIBE_CONFIGS, Role.PROGRESS),
    (Operation.CREATE, Role.PROGRESS),
    (Operation.WRITE, None),
]


@pytest.mark.parametrize("present", [False, True], ids=["new sink", "old sink"])
@pytest.mark.parametrize(("operation", "role"), WANTED, ids=str)
def test_a_missing_right_is_the_one_check_that_fails(
    guarded: KafkaBroker, spec: SinkSpec, operation: Operation, role: Role | None, present: bool
) -> None:
    if present:
        create_all(guarded, spec)
    else:
        create(guarded, NewTopic(spec.source.kafka.topic, 3))
    topics = [topic.name for topic in sink_topics(spec, "k")] if present else [spec.source.kafka.topic]
    rights = least(spec, "k", topics)
    role_of = {topic.name: topic.roles for topic in sink_topics(spec, "k")}
    missing = [r for r in rights if r.operation is operation and role_of.get(r.name, (None,)) == (role,)]
    expected = {str(right) for right in missing}
    grant(guarded, "orders", [right for right in rights if right not in missing])

    found: list[Report] = []

    def fails_alone() -> bool:
        found.append(validate(connection(guarded), spec))
        return failed(found[-1]) == expected

    until(fails_alone, f"only {expected} fails")
    hints = [check.hint for check in found[-1].failed]
    assert hints == [right.command(guarded.bootstrap, "User:orders") for right in missing]
    assert bool(missing) is not (present and operation is Operation.CREATE)
    assert _CANARY not in found[-1].table() + json.dumps(found[-1].to_data()) + str(found[-1].error())


def test_nothing_comes_into_being_and_nobody_is_fenced(guarded: KafkaBroker, spec: SinkSpec) -> None:
    grant(guarded, "orders", least(spec, "k", []))
    ids = f"sinks.{spec.name}.driver"
    producer = Producer(
        {**guarded.client_config(), "transactional.id": ids, "transaction.timeout.ms": "600000"}
    )
    producer.init_transactions(30)
    create(guarded, NewTopic(f"{spec.name}-other", 1))
    producer.begin_transaction()
    producer.produce(f"{spec.name}-other", b"in the middle of it")
    producer.flush(30)
    before = settled(guarded)

    report = validate(connection(guarded), spec)

    assert named(report)["authentication"].outcome is Outcome.PASS
    after = traces(guarded)
    assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}
    assert list(after) == list(before)
    producer.commit_transaction(30)


def test_on_a_broker_without_any_transaction_yet_none_begins(tmp_path_factory: Any, spec: SinkSpec) -> None:
    with KafkaBroker.start(tmp_path_factory.mktemp("fresh kafka"), auto_create=True) as fresh:
        create(fresh, NewTopic(spec.source.kafka.topic, 2))
        fields = ConnectionFields("k", "kafka", extra=fresh.client_config())

        report = validate({"k": fields}, spec)

        assert report.error() is None, report.table()
        assert traces(fresh) == {"groups": [], "topics": [spec.source.kafka.topic]}
        assert "sinks" in named(report)[f'Write on transactional ids "sinks.{spec.name}.*"'].detail


def traces(broker: KafkaBroker) -> dict[str, Any]:
    """Return all topics, all groups, and the end of each log of transactions and groups."""
    client = admin(broker)
    topics = client.list_topics(timeout=60).topics
    kept = [t for t in ("__transaction_state", "__consumer_offsets") if t in topics]
    places = {TopicPartition(t, p): OffsetSpec.latest() for t in kept for p in topics[t].partitions}
    ends = client.list_offsets(places) if places else {}
    found = {f"{place.topic}/{place.partition}": future.result(30).offset for place, future in ends.items()}
    groups = client.list_consumer_groups().result(30).valid
    return {"groups": sorted(group.group_id for group in groups), "topics": sorted(topics), **found}


def settled(broker: KafkaBroker) -> dict[str, Any]:
    """Return the traces once the broker has written all that earlier tests left to it."""
    looks = [traces(broker)]

    def same_as_before() -> bool:
        looks.append(traces(broker))
        return looks[-1] == looks[-2]

    until(same_as_before, "the broker's own logs to stand still")
    return looks[-1]


def test_a_user_logs_in_with_login_and_password_of_the_connection(guarded: KafkaBroker) -> None:
    extra = {name: str(value) for name, value in guarded.client_config("orders").items()}
    user, password = extra.pop("sasl.username"), extra.pop("sasl.password")

    well = validate({"k": ConnectionFields("k", "kafka", login=user, password=password, extra=extra)})

    assert named(well)["authentication"].outcome is Outcome.PASS, well.table()


def test_the_way_into_tls_is_judged_by_the_connections_own_authority(
    guarded: KafkaBroker, authority: Authority
) -> None:
    inside = {"bootstrap_servers": guarded.tls_bootstrap, "security_protocol": "SASL_SSL"}

    well = validate(connection(guarded, **inside, ssl_ca_pem=authority.pem))
    stranger = validate(connection(guarded, **inside, ssl_ca_pem=Authority().pem))

    assert well.error() is None, well.table()
    assert named(well)["certificate"].outcome is Outcome.PASS
    assert well.clusters == {"k": named(well)["cluster"].detail.partition(",")[0]}
    assert failed(stranger) == {"TLS"}
    assert stranger.failed[0].hint == WAY.hint(Stop.NOT_TRUSTED)


@pytest.mark.parametrize(
    ("changes", "name", "stop"),
    [
        pytest.param({"sasl_password": "wrong"}, "authentication", Stop.CREDENTIALS, id="wrong password"),
        pytest.param({"sasl_username": "nobody"}, "authentication", Stop.CREDENTIALS, id="wrong user"),
        pytest.param({"sasl_mechanism": "PLAIN"}, "authentication", Stop.MECHANISM, id="mechanism"),
        pytest.param({"bootstrap_servers": "tls"}, "protocol", Stop.WANTS_TLS, id="no TLS where it is"),
        pytest.param({"security_protocol": "SASL_SSL"}, "TLS", Stop.NO_TLS, id="TLS where there is none"),
    ],
)
def test_a_step_that_does_not_pass_is_the_one_check_that_fails(
    guarded: KafkaBroker, changes: dict[str, str], name: str, stop: Stop
) -> None:
    if changes.get("bootstrap_servers"):
        changes = {"bootstrap_servers": guarded.tls_bootstrap}

    report = validate(connection(guarded, **changes))

    assert failed(report) == {name}, report.table()
    assert report.failed[0].hint == WAY.hint(stop)
    assert not report.failed[0].retryable
    assert _CANARY not in report.table()


def test_a_listener_that_wants_a_user_says_so(guarded: KafkaBroker) -> None:
    extra = {"bootstrap.servers": guarded.bootstrap}

    report = validate({"k": ConnectionFields("k", "kafka", extra=extra)})

    assert failed(report) == {"authentication"}
    assert report.failed[0].hint == WAY.hint(Stop.WANTS_USER)


def test_how_topics_are_made_is_judged(broker: KafkaBroker, spec: SinkSpec) -> None:
    create(
        broker, NewTopic(spec.source.kafka.topic, 1),
        NewTopic(f"{spec.name}-out", 1, config={
            "min.insync.replicas": "2",
            "cleanup.policy": "compact",
            "message.timestamp.type": "LogAppendTime",
        }),
        NewTopic(f"{spec.name}-dead", 1, config={"cleanup.policy": "compact"}),
        NewTopic(kafka_sink(spec).progress_topic, 2, config={"cleanup.policy": "compact,delete"}),
    )  # fmt: skip
    extra = {**broker.client_config(), "message.max.bytes": "2000000"}
    target = {"connection": "k", "topic": f"{spec.name}-out", "format": "bytes", "timestamp": "source"}
    slow = replace_spec(spec, transaction_timeout="15m", target={"kafka": target})

    report = validate({"k": ConnectionFields("k", "kafka", extra=extra)}, slow)

    data, progress = f'data topic "{spec.name}-out"', f'progress topic "{kafka_sink(spec).progress_topic}"'
    assert failed(report) == {
        f"min.insync.replicas of {data}",
        f"max.message.bytes of {data}",
        f"cleanup.policy of {progress}",
        f'cleanup.policy of dead-letter topic "{spec.name}-dead"',
        progress,
    }, report.table()
    assert named(report)[f"cleanup.policy of {data}"].outcome is Outcome.UNKNOWN
    times = named(report)[f"message.timestamp.type of {data}"]
    assert times.outcome is Outcome.UNKNOWN
    assert "is LogAppendTime: the broker puts its own time in the place of" in times.detail
    assert named(report)["transaction timeout"].detail == "15m of at most 15m"
    assert named(report)["transaction log"].outcome is Outcome.PASS


def test_a_topic_that_the_broker_would_not_make_is_named(broker: KafkaBroker, spec: SinkSpec) -> None:
    create(broker, NewTopic(spec.source.kafka.topic, 1))
    target = {"connection": "k", "topic": f"{spec.name}-out", "replication_factor": 3}
    wide = replace_spec(spec, target={"kafka": {**target, "format": "bytes"}})

    report = validate({"k": ConnectionFields("k", "kafka", extra=broker.client_config())}, wide)

    assert failed(report) == {f'data topic "{spec.name}-out"'}
    assert "INVALID_REPLICATION_FACTOR" in report.failed[0].detail


def test_another_cluster_or_topic_than_before_is_refused(broker: KafkaBroker, spec: SinkSpec) -> None:
    create_all(broker, spec)
    fields = {"k": ConnectionFields("k", "kafka", extra=broker.client_config())}
    names = (spec.source.kafka.topic, f"{spec.name}-out", kafka_sink(spec).progress_topic)
    cluster_id = validate(fields).clusters["k"]
    here = [Identity(cluster_id, name, f"id of {name}", 1) for name in names]
    there = [replace(identity, system="another") for identity in here]
    elsewhere = validate(fields, spec, witness=witness(there))
    replaced = validate(fields, spec, witness=witness(here))

    roles = (Role.SOURCE, Role.DATA, Role.PROGRESS)
    identities = {f'identity of {role} "{name}"' for role, name in zip(roles, names, strict=True)}
    assert failed(elsewhere) == failed(replaced) == identities
    assert "the sink ran on another" in elsewhere.failed[0].detail
    assert "another topic of this name" in replaced.failed[0].detail


def witness(identities: list[Identity]) -> Witness:
    return Witness(1, 1, 10, {0: 1}, Identities(*identities), "us", 1)


def replace_spec(spec: SinkSpec, **changes: Any) -> SinkSpec:
    return SinkSpec.parse({**json.loads(spec.to_json()), **changes})


@pytest.fixture
def database(postgres: Postgres) -> Iterator[dict[str, Any]]:
    """A user of its own without any right, and a table in a schema of its own."""
    name = f"v{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f"CREATE TABLE {name}.users (userid text, region text)")
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
    yield {
        "name": name,
        "fields": ConnectionFields(
            "pg", "postgres", postgres.host, postgres.port, name, "secret", postgres.dbname
        ),
    }
    with postgres.connect() as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE")
        connection.execute(f"DROP ROLE {name}")


def lookup(table: str, *columns: str) -> SinkSpec:
    users = {"postgres": {"connection": "pg", "table": table, "columns": list(columns) or None}}
    query = "SELECT s.value FROM source s LEFT JOIN u ON u.userid = CAST(s.value AS STRING)"
    return SinkSpec.parse(
        {"name": "look", "source": "k/in", "target": "k/out", "lookups": {"u": users}, "query": query}
    )


def of_database(spec: SinkSpec, fields: ConnectionFields) -> dict[str, Check]:
    report = validate({"pg": fields, "k": ConnectionFields("k", "kafka", extra={})}, spec)
    return {check.name: check for check in report.checks if check.subject == "pg"}


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        (["SELECT ON {0}.users"], "USAGE on schema"),
        (["USAGE ON SCHEMA {0}"], "SELECT on table"),
        (["USAGE ON SCHEMA {0}", "SELECT ON {0}.users"], ""),
    ],
)
def test_a_missing_privilege_is_the_one_check_that_fails(
    postgres: Postgres, database: Mapping[str, Any], granted: list[str], missing: str
) -> None:
    name = database["name"]
    with postgres.connect() as connection:
        for right in granted:
            connection.execute(f"GRANT {right.format(name)} TO {name}")

    checks = of_database(lookup(f"{name}.users", "userid"), database["fields"])

    ill = [check for check in checks.values() if check.outcome is Outcome.FAIL]
    assert [check.name.startswith(missing) for check in ill] == ([True] if missing else [])
    assert all(check.hint.startswith("GRANT ") for check in ill)


def test_the_grant_in_the_hint_works(postgres: Postgres, database: Mapping[str, Any]) -> None:
    spec = lookup(f"{database['name']}.users")
    for _ in range(2):
        checks = of_database(spec, database["fields"]).values()
        with postgres.connect() as connection:
            for check in checks:
                if check.outcome is Outcome.FAIL:
                    connection.execute(check.hint.encode())

    assert not [check for check in of_database(spec, database["fields"]).values() if check.hint]


def test_what_a_table_lacks_or_hides_is_named(postgres: Postgres, database: Mapping[str, Any]) -> None:
    name = database["name"]
    with postgres.connect() as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA {name} TO {name}")
        connection.execute(f"GRANT SELECT ON {name}.users TO {name}")

    column = of_database(lookup(f"{name}.users", "userid", "regoin"), database["fields"])
    table = of_database(lookup(f"{name}.user"), database["fields"])
    with postgres.connect() as connection:
        connection.execute(f"ALTER TABLE {name}.users ENABLE ROW LEVEL SECURITY")
        connection.execute(f"ALTER ROLE {name} SET statement_timeout = '5s'")
    hidden = of_database(lookup(f"{name}.users"), database["fields"])

    assert column[f"table {name}.users"].hint == 'did you mean "region"?'
    assert table[f"table {name}.user"].hint == f'did you mean "{name}.users"?'
    assert hidden[f"table {name}.users"].outcome is Outcome.UNKNOWN
    assert "statement_timeout is 5s" in hidden["settings"].detail


def test_a_database_that_does_not_let_us_in_is_named_and_the_password_is_not(
    database: Mapping[str, Any],
) -> None:
    fields = replace(database["fields"], password=_CANARY)

    report = validate({"pg": fields})

    assert failed(report) == {"authentication"}
    assert _CANARY not in report.table() + repr(fields)


@pytest.mark.parametrize(
    ("target", "granted", "judged"),
    [
        ({"table": "users"}, "INSERT ON {0}.users", (Outcome.PASS, "is there")),
        ({"table": "users"}, "SELECT ON {0}.users", (Outcome.FAIL, "INSERT")),
        ({"table": "clicks"}, "", (Outcome.FAIL, "does not exist")),
        ({"table": "clicks", "create": True}, "", (Outcome.PASS, "the sink makes it")),
    ],
)
def test_the_table_of_a_target_is_judged(
    postgres: Postgres,
    database: Mapping[str, Any],
    target: dict[str, Any],
    granted: str,
    judged: tuple[Outcome, str],
) -> None:
    name, table = database["name"], f"{database['name']}.{target['table']}"
    with postgres.connect() as connection:
        for right in filter(None, ("USAGE ON SCHEMA {0}", granted)):
            connection.execute(f"GRANT {right.format(name)} TO {name}")
    whole = {**target, "connection": "pg", "table": table}
    spec = SinkSpec.parse({"name": "look", "source": "k/in", "target": {"postgres": whole}})

    check = of_database(spec, database["fields"])[f'data table "{table}"']

    assert check.outcome is judged[0]
    assert judged[1] in check.detail


def test_a_target_that_another_package_brings_is_asked_behind_the_cluster_of_its_connection(
    guarded: KafkaBroker, tmp_path: Path
) -> None:
    with register(tmp_path, "riding = tests.brought_shelf:ON_KAFKA").found():
        source = {"kafka": {"connection": "k", "topic": "pytest_none", "schema": "id long"}}
        spec = SinkSpec.parse({"name": "o", "source": source, "target": {"riding": {"connection": "k"}}})
        stored = {"k": ConnectionFields("k", "kafka", extra=guarded.client_config())}
        away = {"k": ConnectionFields("k", "kafka", extra={"bootstrap.servers": "127.0.0.1:1"})}

        reached, not_reached = validate(stored, spec), validate(away, spec)

    assert [check.detail for check in reached.checks if check.name == "place top"] == ["by kafka"]
    assert [check for check in not_reached.checks if check.name == "place top"] == []
