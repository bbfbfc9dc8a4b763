"""What the transaction coordinators of a cluster remember of a sink: what a Kafka target remembers by itself.

A coordinator knows a transactional id until ``transactional.id.expiration.ms`` (seven days) after its last
use. What it says of an id, seen on Kafka 4.1:

* an id that was never used is not known;
* ``init_transactions``, the fence, leaves *Empty*, and counts the producer epoch on from 0;
* a commit leaves *CompleteCommit*, until the next fence.

So a commit is proof, and its absence is none: a start that fenced and died wiped it out. What is left of it
is the producer epoch. One start of a new sink leaves 0 behind; whoever comes later finds more than 0, and so
does whoever looks behind an executor's writer, because opening one fences too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_provider_sinks.core.progress.record import DRIVER, WriterId

_COMMITTED = frozenset({"PrepareCommit", "CompleteCommit"})
_UNTOUCHED = "Empty"


@dataclass(frozen=True)
class TransactionalIdFacts:
    """What a coordinator says of one transactional id.

    :param state: of its newest transaction, in Kafka's own word.
    :param epoch: of its producer; each fence counts it on.
    :param producer: the number of its producer.
    """

    state: str
    epoch: int
    producer: int = 0

    @property
    def has_committed(self) -> bool:
        """Its newest transaction was committed."""
        return self.state in _COMMITTED

    @property
    def was_used(self) -> bool:
        """More happened to it than one fence."""
        return self.state != _UNTOUCHED or self.epoch > 0


@dataclass(frozen=True)
class BrokerMemory:
    """What the coordinators know of a sink's writers; see :class:`.target_memory.TargetMemory`.

    :param ids: by writer; those that no coordinator knows are left out.
    :param reason: why they could not be asked; empty if they could.
    """

    ids: Mapping[WriterId, TransactionalIdFacts] = field(default_factory=dict)
    reason: str = ""
    who: ClassVar[str] = "transaction coordinator"
    heading: ClassVar[str] = "coordinators"

    @property
    def has_committed(self) -> bool:
        """A writer has committed rows; or the driver its record, and a writer was opened since.

        A driver that committed beside writers that were fenced once only has announced a run without a row.
        """
        writers = [facts for writer, facts in self.ids.items() if writer != DRIVER]
        driver = self.ids.get(DRIVER)
        announced = driver is not None and driver.has_committed
        return any(facts.has_committed or (announced and facts.was_used) for facts in writers)

    @property
    def was_used(self) -> bool:
        """Writers were opened, or fenced by more than one start; whether they committed is not known."""
        return any(facts.was_used for writer, facts in self.ids.items() if writer != DRIVER)

    def __str__(self) -> str:
        if self.reason:
            return f"could not be asked ({self.reason})"
        committed = sorted(writer for writer, facts in self.ids.items() if facts.has_committed)
        used = sorted(writer for writer, facts in self.ids.items() if facts.was_used)
        if not used:
            return "knows of no transaction"
        return f"knows of commits by {', '.join(committed)}" if committed else f"knows of {', '.join(used)}"
