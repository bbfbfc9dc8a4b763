"""What many deferred sinks ask of one triggerer: ``make bench-followers``.

Runs the real triggers of N sinks on M connections in one event loop, as a triggerer does, against a played
resource manager and real status files. Airflow is played: each reading of a connection and each call about a
Variable waits its turn and takes what it took in a real triggerer, which serves one after the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from scripts.demo.table import table
from tests.airflow.fake_manager import fake_manager
from tests.airflow.fakes import status

SINKS, CONNECTIONS = 1000, 10
SERVED_SECONDS = 1 / 24
"""A real triggerer served 24 readings of connections a second."""
SETTLE_SECONDS, STEADY_SECONDS, CHANGE_SECONDS = 90.0, 120.0, 120.0
_ALIVE_SECONDS = 10.0


@dataclass
class PlayedAirflow:
    """What triggers ask of Airflow, answered one after the other."""

    connections: dict[str, Any]
    variables: dict[str, str] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    waiting_max: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, kind: str, answer: Callable[[], Any]) -> Any:
        """Answer when it is this one's turn."""
        self.waiting += 1
        self.waiting_max = max(self.waiting_max, self.waiting)
        try:
            with self.lock:
                time.sleep(SERVED_SECONDS)
                self.asked[kind] += 1
                return answer()
        finally:
            self.waiting -= 1

    def connection(self, conn_id: str) -> Any:
        from airflow.sdk import Connection

        kind = "Spark connections" if conn_id == "spark_yarn" else "connections of sinks"
        return self.serve(kind, lambda: Connection(conn_id=conn_id, **self.connections[conn_id]))

    @contextmanager
    def played(self) -> Iterator[None]:
        """Stand in for Airflow while the body runs."""
        from airflow.sdk import BaseHook, Variable

        def get(key: str, *_: object, **__: object) -> Any:
            return self.serve("Variables", lambda: self.variables.get(key))

        def keys(*, prefix: str = "", **_: object) -> list[str]:
            return list(
                self.serve("Variables", lambda: [key for key in self.variables if key.startswith(prefix)])
            )

        def put(key: str, value: str, *_: object, **__: object) -> None:
            self.serve("Variables", lambda: self.variables.update({key: value}))

        with ExitStack() as stack:
            for where, name, what in (
                (BaseHook, "get_connection", self.connection),
                (Variable, "get", get),
                (Variable, "keys", keys),
                (Variable, "set", put),
            ):
                stack.enter_context(patch.object(where, name, staticmethod(what)))
            yield


def kafka(address: str) -> dict[str, Any]:
    """Return the fields of a connection."""
    return {"conn_type": "kafka", "extra": json.dumps({"bootstrap.servers": address})}


async def keep_alive(folder: Path, sinks: int) -> None:
    """Write each sink's status again every ten seconds, as its driver does."""
    while True:
        for number in range(sinks):
            document = status(state="running", lag={"0": 0}, at=f"{time.time():.0f}")
            document |= {"sink": f"sink_{number:04}", "launch": 1, "owner": "us"}
            launch = folder / f"{number:04}"
            launch.mkdir(exist_ok=True)
            (launch / "status.tmp").write_text(json.dumps(document))
            (launch / "status.tmp").replace(launch / "status.json")
            await asyncio.sleep(_ALIVE_SECONDS / sinks)


def trigger(number: int, connections: int, folder: Path, app_id: str) -> Any:
    """Return the trigger of a sink."""
    from airflow_provider_sinks.triggers.sink_driver import SinkDriverTrigger

    conn_id = f"kafka_{number % connections}"
    name = f"sink_{number:04}"
    return SinkDriverTrigger(
        application_id=app_id,
        spark_conn_id="spark_yarn",
        status_uri=(folder / f"{number:04}").as_uri(),
        sink={"name": name, "source": f"{conn_id}/{name}", "target": f"{conn_id}/{name}-out"},
        poll_interval=10,
    )


async def measure(
    airflow: PlayedAirflow, folder: Path, manager: Any, sinks: int, connections: int
) -> dict[str, str]:
    """Return what was measured."""
    alive = asyncio.ensure_future(keep_alive(folder, sinks))
    rung: dict[str, float] = {}

    async def wait(one: Any) -> None:
        async for event in one.run():
            rung[event.payload["sink"]] = time.monotonic()
            return

    for number in range(sinks):
        manager.run(f"application_1_{number:04}")
    waiting = [
        asyncio.ensure_future(wait(trigger(number, connections, folder, f"application_1_{number:04}")))
        for number in range(sinks)
    ]
    await asyncio.sleep(SETTLE_SECONDS)
    airflow.asked.clear()
    airflow.waiting_max = 0
    await asyncio.sleep(STEADY_SECONDS)
    steady, queue = Counter(airflow.asked), airflow.waiting_max
    airflow.connections["kafka_0"] = kafka("elsewhere:9092")
    edited = time.monotonic()
    await asyncio.sleep(CHANGE_SECONDS)
    for task in (alive, *waiting):
        task.cancel()
    late = sorted(at - edited for at in rung.values())
    wanted = sinks // connections
    return {
        **{
            f"{kind}, calls a second": f"{count / STEADY_SECONDS:.1f}"
            for kind, count in sorted(steady.items())
        },
        "together, of 24 that a triggerer serves": f"{steady.total() / STEADY_SECONDS:.1f}",
        "calls that waited their turn at once, at most": str(queue),
        f"sinks that rang after an edit, of {wanted}": str(len(late)),
        "  the first, after": f"{late[0]:.0f} s" if late else "-",
        "  the last, after": f"{late[-1]:.0f} s" if late else "-",
    }


def main(arguments: list[str]) -> None:
    """Print the table."""
    sinks, connections = (*map(int, arguments), *(SINKS, CONNECTIONS)[len(arguments) :])
    with fake_manager() as manager, tempfile.TemporaryDirectory(prefix="sinks-followers-") as name:
        os.environ["AIRFLOW_HOME"] = name
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": manager.url}
        known = {f"kafka_{number}": kafka("here:9092") for number in range(connections)}
        known["spark_yarn"] = {"conn_type": "spark", "host": "yarn", "extra": json.dumps(extra)}
        airflow = PlayedAirflow(known)
        with airflow.played():
            measured = asyncio.run(measure(airflow, Path(name), manager, sinks, connections))
    print(f"{sinks} deferred sinks on {connections} connections in one triggerer")
    print(table(measured))
    sys.stdout.flush()
    os._exit(0)  # looks that are under way hang in threads


if __name__ == "__main__":
    main(sys.argv[1:])
