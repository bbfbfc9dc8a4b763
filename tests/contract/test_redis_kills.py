"""What SIGKILL of the server does to a sink that writes into Redis: no row missing, none doubled.

``FAULT_ROUNDS`` multiplies the kills; ``FAULT_SEED`` repeats a run.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from pathlib import Path

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.testing.played_start import PlayedStart, rows_of
from tests.contract.redis_harness import RedisHarness
from tests.installed_connector import Installed
from tests.redis_server import RedisServer

KILLS = 3 * int(os.environ.get("FAULT_ROUNDS", "1"))
SEED = int(os.environ.get("FAULT_SEED") or time.time())
ROWS = 200


def test_a_server_that_is_killed_again_and_again_has_every_row_once(
    installed_redis: Installed, tmp_path: Path
) -> None:
    chance = random.Random(SEED)  # noqa: S311  chance, no secret
    with installed_redis.found(), RedisServer.started(tmp_path / "killed") as server:
        harness, over = RedisHarness(server), threading.Event()
        killer = threading.Thread(target=kill_again_and_again, args=(server, chance, over))
        killer.start()
        epoch, starts = 0, 0
        while not over.is_set() or epoch < KILLS:
            starts += 1
            epoch = run_until_it_fails(harness, over)
        killer.join()
        harness.direct.ping()

        assert starts > KILLS // 2, f"FAULT_SEED={SEED}: no kill was felt"
        assert harness.visible() == rows_of({0: range(epoch * ROWS)}), f"FAULT_SEED={SEED}"
        harness.close()


def run_until_it_fails(harness: RedisHarness, over: threading.Event) -> int:
    """Write epochs, each of one range behind the other, until the server is gone or all is over.

    :returns: the newest epoch that is known; 0 where the server did not answer.
    """
    epoch = 0
    with contextlib.suppress(UnavailableError, InDoubtError):  # anything else is a fault
        start = PlayedStart(harness).start()
        epoch = start.connector.progress().epoch
        while not over.is_set() or epoch < KILLS:
            start.epoch(epoch + 1, {0: range(epoch * ROWS, (epoch + 1) * ROWS)})
            epoch += 1
        return epoch
    time.sleep(0.1)
    return 0


def kill_again_and_again(server: RedisServer, chance: random.Random, over: threading.Event) -> None:
    """Kill the server at random moments, and start it on what its disk has."""
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.3, 1.5))
        server.service.kill()
        server.start()
    over.set()
