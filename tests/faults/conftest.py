"""How often faults strike, by which seed, and who tells the stories.

``FAULT_ROUNDS``    kills in each chapter, the first of them aimed at an open transaction; of the driver so
                    many random ones beside it. 1 unless it is set; the full count is
                    ``make test-faults FAULT_ROUNDS=20``.
``FAULT_SEED``      where all random choices come from; printed, so that a failed run can be repeated.
``FAULT_PATIENCE``  how many times as long is waited for a process, on a machine that others keep busy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults import lake_stories, memory_stories, stories
from tests.faults.campaign import Campaign
from tests.faults.driver import PATIENCE
from tests.faults.outcome import ROUNDS
from tests.faults.world import World

SEED = int(os.environ.get("FAULT_SEED") or time.time())
_SIDE_BY_SIDE = 2
_SECONDS_PER_ROUND = 300
_RESULTS = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def world(broker: KafkaBroker, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Where everything happens."""
    return World(broker, postgres, tmp_path_factory.mktemp("faults"), SEED, ROUNDS)


@pytest.fixture(scope="session")
def campaign(world: World, request: pytest.FixtureRequest) -> Iterator[Campaign]:
    """Tell the stories of all selected tests, from the first test that waits for a chapter."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and _is_here(item)]
    wanted = [_params(item)["told"] for item in items if "told" in _params(item)]
    known = {**stories.STORIES, **lake_stories.STORIES, **memory_stories.STORIES}
    running = Campaign(world, known, wanted, _SIDE_BY_SIDE)
    request.config.stash[_RESULTS] = running.results
    yield running
    running.close()


@pytest.fixture
def told(campaign: Campaign, request: pytest.FixtureRequest) -> Any:
    """Wait for the chapter that a test names: ``parametrize("told", [(story, chapter)], indirect=True)``."""
    return campaign.result(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test here time for all stories: the first that waits may wait for the last of them."""
    for item in items:
        if _is_here(item):
            item.add_marker(pytest.mark.timeout(PATIENCE * (1800 + _SECONDS_PER_ROUND * ROUNDS)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what each chapter found."""
    if config.stash.get(_RESULTS, None):
        terminalreporter.section(f"faults: {ROUNDS} rounds, FAULT_SEED={SEED}")
        for line in config.stash[_RESULTS]:
            terminalreporter.write_line(line)


def _is_here(item: pytest.Item) -> bool:
    """Whether a test is one of this folder; others may run with it."""
    return Path(__file__).parent in item.path.parents


def _params(item: pytest.Function) -> dict[str, Any]:
    return item.callspec.params if hasattr(item, "callspec") else {}
