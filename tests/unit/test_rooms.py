"""Who may say Kafka: its folder, the local stack, and who speaks of the source. A target is one folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from airflow_provider_sinks.cli.new_connector import write_project
from airflow_provider_sinks.connectors.base import CommitsOn
from airflow_provider_sinks.connectors.registry import connect, connection_types, kind
from airflow_provider_sinks.connectors.stored_letters import stored_letters
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.lifecycle.replay import replaying_sink
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.installed_connector import register

PACKAGE = Path(__file__).parents[2] / "airflow_provider_sinks"

WORDS = {
    r"\bsource\.kafka\b": "the option: every source is a Kafka topic",
    r"\bKafkaSource\b": "its class, in core/spec/source.py",
    r"\bconfluent[_-]kafka\b": "the name of a library, whose client of registries is used",
    r"\bKafka Connect\b|\borg\.apache\.kafka\.connect\b": "the names of types in schemas of a registry",
}
"""What may be said anywhere, and why."""

FILES = {
    "the source, which is a Kafka topic": (
        "assets.py",
        "connectors/schema_registry/checks.py",
        "connectors/schema_registry/source_schemas.py",
        "connectors/source.py",
        "core/lifecycle/rewind.py",
        "core/spec/changes.py",
        "core/spec/kinds.py",
        "core/spec/parts.py",
        "core/spec/rules.py",
        "core/spec/sink.py",
        "core/spec/source.py",
        "core/spec/source_options.py",
        "forms/run_sink_once.py",
        "operators/submit_sink_job.py",
        "streaming/analysis.py",
        "streaming/driver_share.py",
        "streaming/failures.py",
        "streaming/source.py",
        "streaming/transform.py",
    ),
    "its client library, which is loaded before a worker forks": ("streaming/daemon.py",),
    "the names that users import, and what the package is": (
        "__init__.py",
        "core/spec/build.py",
        "provider_info.py",
        "testing/interface.py",
    ),
    "an example, in a docstring or a hint": (
        "connectors/preflight.py",
        "core/alter/fold.py",
        "core/alter/leave.py",
        "core/alter/statement.py",
        "core/connection/follow.py",
        "core/errors.py",
        "core/spec/problems.py",
        "core/spec/yaml_lines.py",
        "forms/__init__.py",
        "forms/alter_connection.py",
        "forms/fields.py",
        "hooks/connections.py",
        "operators/alter_connection_restart.py",
    ),
    "what a new connector begins with: a sink that reads a topic": (
        "cli/connector_project/README.md",
        "cli/connector_project/tests/test_contract.py",
    ),
}
"""Who may say more, and why. Judge a file before you add it: what a target knows goes into its folder."""


def test_whoever_says_kafka_outside_of_its_folder_has_a_reason() -> None:
    listed, found = {name for names in FILES.values() for name in names}, set(saying_kafka())

    assert (found - listed, listed - found) == (set(), set())


def saying_kafka() -> Iterator[str]:
    for path in PACKAGE.rglob("*"):
        name = path.relative_to(PACKAGE).as_posix()
        if path.suffix in {".py", ".md"} and not name.startswith(("connectors/kafka/", "local/")):
            told = re.sub("|".join(WORDS), "", path.read_text(encoding="utf-8"))
            if "kafka" in told.lower():
                yield name


def test_every_word_that_may_be_said_anywhere_is_said() -> None:
    told = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))

    assert [word for word in WORDS if not re.search(word, told)] == []


def test_a_toy_target_is_one_folder(tmp_path: Path) -> None:
    """Nothing of the package is touched for its spec, its outputs, connections, checks and letters."""
    toy = tmp_path / "toy"
    write_project("toy", toy)

    with register(toy, "toy = sinks_connector_toy.kind:KIND").found():
        spec = SinkSpec.parse(
            {
                "name": "orders",
                "source": {"kafka": {"connection": "k", "topic": "in", "schema": "id long"}},
                "target": {"toy": {"file": str(tmp_path / "toy.db"), "table": "orders"}},
                "dead_letter": {"table": "unread"},
            }
        )
        connections = connection_types(spec)
        checks = [check.outcome for check in kind(spec).target_checks(spec, None)]
        with closing(connect(spec, ResolvedConnections({}))) as target:
            commits_on = target.capabilities().commits_on
        with pytest.raises(ConfigurationError, match="toy cannot show them"):
            stored_letters(replaying_sink(spec), ResolvedConnections({}))

    assert (spec.target_kind, spec.resources[Role.DATA]) == ("toy", f"{tmp_path}/toy.db#orders")
    assert (connections, checks, commits_on) == ({"k": "kafka"}, [Outcome.PASS], CommitsOn.EXECUTOR)
