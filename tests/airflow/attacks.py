"""What attacks on stored secrets share: a server of the attacker, and a Variable of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.airflow.fakes import SINK
from tests.listening_broker import Listener

if TYPE_CHECKING:
    from airflow_provider_sinks.clients.airflow_api import AirflowApi
    from tests.airflow.desk import Answer, Desk

FOREIGN, FOREIGN_VALUE = "foreign", "the value of a foreign Variable"
NO_ID = "is not an Airflow connection id (the id of a connection, not its address)"
"""What is said of a server where a connection belongs."""

VERBS = ("check", "plan", "describe")
"""The commands that take sinks from a folder, one by one."""


@contextmanager
def unheard(server: AbstractContextManager[Listener]) -> Iterator[Listener]:
    """Let a server of the attacker's run, which hears nothing, whatever the body does."""
    with server as listening:
        yield listening
        assert not listening.visits
        assert not listening.logins


@contextmanager
def foreign_variable(api: AirflowApi) -> Iterator[None]:
    """Have the Variable while the body runs."""
    api.call("POST", "variables", {"key": FOREIGN, "value": FOREIGN_VALUE})
    yield
    api.call("DELETE", f"variables/{FOREIGN}")


def run_on_file(desk: Desk, folder: Path, verb: str, sink: str, sinks: Sequence[Mapping[str, Any]]) -> Answer:
    """Run a command on one of the sinks of a YAML file; Spark is not asked."""
    (folder / "sinks.yaml").write_text(yaml.safe_dump({"sinks": list(sinks)}))
    more = ("--ask-spark", "never") if verb == "check" else ()
    return desk.run(verb, sink, "--folder", str(folder), *more)


def demand_refused_in_file(desk: Desk, folder: Path, verb: str, attack: Mapping[str, Any]) -> None:
    """Demand that a command finds the sink beside the attack, and takes the attack for no sink."""
    sane = {**SINK, "name": "sane"}

    answer = run_on_file(desk, folder, verb, attack["name"], [attack, sane])

    assert answer.code == 64, answer
    assert f'folder {folder} has no valid sink "{attack["name"]}"' in answer.err
    assert f"to see why: python -m airflow_provider_sinks check {folder}" in answer.err
    assert not answer.out
    assert desk.run("describe", "sane", "--folder", str(folder)).code == 0
