"""A sweep that stands still between its looks, and is overtaken there, removes nothing of the newer start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_sinks.connectors.table_format.publisher import Publisher
from airflow_provider_sinks.connectors.table_format.stage import Stage, StageFolder
from airflow_provider_sinks.core.errors import FencedError
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND, THIRD
from airflow_provider_sinks.testing.played_start import Harness, PlayedStart, PlayedTask, rows_of
from tests.contract.delta_harness import DeltaHarness
from tests.contract.iceberg_harness import IcebergHarness


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    if request.param == "delta":
        yield DeltaHarness(tmp_path)
        return
    made = IcebergHarness(request.getfixturevalue("postgres"), tmp_path)
    yield made
    for left in made.made:
        left.close()
    made.close()


@pytest.mark.parametrize("has_listed", [False, True], ids=["before it lists", "behind its list"])
def test_a_sweep_that_is_overtaken_removes_nothing_of_the_newer_start(
    lake: Harness, has_listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer start commits, and is killed before it has forgotten its stages."""
    older, late = PlayedStart(lake).start(), PlayedStart(lake).start()
    PlayedTask(older, 1, 0, THIRD).go_on()
    leftovers = StageFolder.leftovers

    def overtaken(self: StageFolder, but: str) -> Iterator[Stage]:
        monkeypatch.setattr(StageFolder, "leftovers", leftovers)
        found = list(self.leftovers(but)) if has_listed else []
        newer = PlayedStart(lake).start()
        monkeypatch.setattr(Publisher, "_forget", lambda *_: None)
        newer.epoch(1, FIRST, bad=[3])
        return iter(found or list(self.leftovers(but)))

    monkeypatch.setattr(StageFolder, "leftovers", overtaken)
    with pytest.raises(FencedError):
        late.connector.sweep()
    monkeypatch.undo()

    PlayedStart(lake).start().epoch(2, SECOND)
    assert lake.visible() == sorted({*rows_of(FIRST, SECOND)} - {(0, 3), (1, 3)})
    assert lake.set_aside() == [(0, 3), (1, 3)]
