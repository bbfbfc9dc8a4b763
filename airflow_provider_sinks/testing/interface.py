"""What a connector in a package of its own may import of us. All else may change with any release."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kind import ConnectorKind

_US = "airflow_provider_sinks"

INTERFACE: Mapping[str, str] = {
    f"{_US}.connectors.kind": "`ConnectorKind`: what the entry point leads to",
    f"{_US}.connectors.base": "the interface on the driver",
    f"{_US}.connectors.epoch_writer": "the interface on executors: writers, tokens, doubt, lost stages",
    f"{_US}.connectors.target_form": "`TargetForm`: what `run_sink_once_dag(target=...)` asks about it",
    f"{_US}.connectors.plain": "`PlainConnector`: what a target answers that has nothing to say",
    f"{_US}.connectors.rows": "the columns in which rows reach a writer beside those of the target",
    f"{_US}.connectors.stored_letters": "`StoredLetters`: how they are read, where a kind of target can",
    f"{_US}.connectors.encoding": "names and JSON in Spark's expressions; for drivers only",
    f"{_US}.core.spec.parts": (
        "`TargetOptions`, `ConnectedTarget`, `Target`, `DeadLetterPart`: what the options inherit"
    ),
    f"{_US}.core.spec.sink": "`SinkSpec`: what the spec of a sink with such a target inherits",
    f"{_US}.core.redefinition.bearing": "`Bearing`: what a change of an option bears on",
    f"{_US}.core.spec.fields": "types of options, such as columns, with their errors",
    f"{_US}.core.spec.rules": "rules between options",
    f"{_US}.core.spec.problems": "`UnfitError`: what is wrong with one value, and what to write instead",
    f"{_US}.core.dead_letters.letter": "`Letter`: what `airflow sinks dead-letters` shows",
    f"{_US}.core.decision.facts": "`Observation`, `ResourceFacts`, `Creation`: what is seen or to be made",
    f"{_US}.core.progress.record": "`ProgressRecord`, to be stored as it encodes itself; the ids of writers",
    f"{_US}.core.progress.history": "`History`: the newest record of each writer",
    f"{_US}.core.progress.identity": "`ResourceKind`: whether people call an output a topic or a table",
    f"{_US}.core.progress.past_epochs": "`PastEpoch`: what a rewind by epoch needs, where a target keeps it",
    f"{_US}.core.lifecycle.steps": "`EmptyOutput` and `DeleteOutput`: what a reset asks for",
    f"{_US}.core.connection.resolved": "`ResolvedConnections`: the options of a launch's connections",
    f"{_US}.core.connection.types": "`ConnectionType`: what a type of connection must tell of itself",
    f"{_US}.core.connection.options": "`ConnectionOptions`: what it becomes for a sink",
    f"{_US}.core.connection.fields": "`ConnectionFields`: a connection as Airflow stores it",
    f"{_US}.core.connection.alterable": "`AlterableOptions`: what of it may be altered, and what is secret",
    f"{_US}.connectors.connection_checks": "`CheckedConnectionType`: how a validation judges a connection",
    f"{_US}.connectors.kafka.connection_type": "`KAFKA`, for a target on a connection of type `kafka`",
    f"{_US}.connectors.kafka.options": "`KafkaOptions`, its options",
    f"{_US}.connectors.postgres.connection_type": "`POSTGRES`, for one on a connection of type `postgres`",
    f"{_US}.connectors.postgres.options": "`PostgresOptions`, its options",
    f"{_US}.core.checks.check": "what a validation reports",
    f"{_US}.core.errors": "the errors, each of which says whether a retry helps",
    f"{_US}.testing.connector_contract": "the suite that proves a connector; for its tests",
    f"{_US}.testing.played_start": "what that suite must know of the target: `Harness`; for its tests",
}
"""The modules, and what each is for."""


def foreign_imports(folder: Path) -> list[str]:
    """Return where the code of a folder imports anything else of us, as ``file:line: module``.

    A test of your package needs no more than ``assert foreign_imports(folder) == []``.
    """
    return [
        f"{path.relative_to(folder)}:{line}: {module}"
        for path in sorted(folder.rglob("*.py"))
        for line, module in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if module.split(".")[0] == _US and module not in INTERFACE
    ]


def unsaid_options(kind: ConnectorKind) -> tuple[str, ...]:
    """Return the options of a kind of target of which its spec does not say what a change bears on.

    A test of your package needs no more than ``assert unsaid_options(KIND) == ()``. A change of one that is
    not said needs a new generation, once rows were written.
    """
    from airflow_provider_sinks.core.redefinition.options import unsaid

    return unsaid(kind.sink)


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the modules that are imported anywhere, also inside of functions."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                for alias in node.names:
                    is_module = f"{module}.{alias.name}" in INTERFACE
                    yield node.lineno, f"{module}.{alias.name}" if is_module else module
            case _:
                pass
