"""A plain loop over confluent-kafka, as one writes it by hand: two processes, half the partitions each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_sinks.local.processes import Service
from tests.bench.peers.arm import CopyingArm, Running, Work

_PROGRAM = Path(__file__).with_name("loop.py")
_PROCESSES = 2


@dataclass(frozen=True)
class LoopArm(CopyingArm):
    """Consume, produce, send offsets, commit."""

    def start(self, work: Work) -> Running:
        """See :class:`.arm.Arm`."""
        count = min(_PROCESSES, work.partitions)
        return Running([_start(work, number, count) for number in range(count)])


def _start(work: Work, number: int, count: int) -> Service:
    partitions = ",".join(map(str, range(number, work.partitions, count)))
    rows = max(1, work.rows_per_commit // count)
    arguments = [work.bootstrap, work.source, work.target, partitions, str(rows)]
    return work.service(f"loop {number}", [sys.executable, str(_PROGRAM), *arguments])
