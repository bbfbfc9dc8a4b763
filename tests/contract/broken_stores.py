"""The contract over targets with a fault: test_broken_targets.py runs it, and wants it to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from airflow_provider_sinks.connectors.base import CommitsOn
from airflow_provider_sinks.connectors.epoch_writer import Token
from airflow_provider_sinks.connectors.memory.store import Outputs, Row, Slot
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressRecord
from airflow_provider_sinks.testing.connector_contract import DriverCommits, ExecutorCommits
from tests.contract.memory_harness import FlakyStore, MemoryHarness


class WithoutCompareAndSet(FlakyStore):
    def _demand_same(self, sink: str, writer: str, held: Slot) -> None:
        pass


class ComparesEpochsOnly(FlakyStore):
    """Whoever knows the newest epoch may commit, which two holders of one id do in a long range."""

    def _demand_same(self, sink: str, writer: str, held: Slot) -> None:
        found = self.history(sink).records.get(writer)
        if (found.epoch if found else 0) != (held.record.epoch if held.record else 0):
            super()._demand_same(sink, writer, held)


class FencesTheDriverOnly(FlakyStore):
    """A newer start takes the driver's place, and writers that were open before go on."""

    def _demand_same(self, sink: str, writer: str, held: Slot) -> None:
        found = self._slots[sink][writer]
        if found.run == held.run or writer == DRIVER:
            super()._demand_same(sink, writer, held)


class RowsBeforeTheRecord(FlakyStore):
    def commit(
        self, sink: str, writer: str, held: Slot, record: ProgressRecord, written: Mapping[str, Sequence[Row]]
    ) -> Slot:
        for name, rows in written.items():
            self.outputs[name].rows.extend(rows)
        return super().commit(sink, writer, held, record, {})


class TakesTokensTwice(FlakyStore):
    """A commit that is given again, because its answer was lost, happens again."""

    def publish(
        self, sink: str, run: str, record: ProgressRecord, tokens: Sequence[Token], outputs: Outputs
    ) -> None:
        stages = dict(self._stages)
        is_done = record in self.history(sink).records.values()
        super().publish(sink, run, record, tokens, outputs)
        self._stages |= stages
        if is_done:
            self.outputs[outputs.data].rows.extend(row for token in tokens for row in stages[token.name].rows)


class TakesTokensOfAnyRun(FlakyStore):
    def publish(
        self, sink: str, run: str, record: ProgressRecord, tokens: Sequence[Token], outputs: Outputs
    ) -> None:
        del run
        super().publish(sink, self.run_in_force(sink, SINGLE_WRITER), record, tokens, outputs)


WITH_EXECUTORS = (WithoutCompareAndSet, ComparesEpochsOnly, FencesTheDriverOnly, RowsBeforeTheRecord)
WITH_THE_DRIVER = (TakesTokensTwice, TakesTokensOfAnyRun)


class TestExecutor(ExecutorCommits):
    in_one_process = True

    @pytest.fixture(params=WITH_EXECUTORS, ids=lambda store: store.__name__)
    def harness(self, request: pytest.FixtureRequest) -> MemoryHarness:
        return MemoryHarness(CommitsOn.EXECUTOR, request.param())


class TestDriver(DriverCommits):
    in_one_process = True

    @pytest.fixture(params=WITH_THE_DRIVER, ids=lambda store: store.__name__)
    def harness(self, request: pytest.FixtureRequest) -> MemoryHarness:
        return MemoryHarness(CommitsOn.DRIVER, request.param())
