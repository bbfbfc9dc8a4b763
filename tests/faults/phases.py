"""The kinds of faults that a sink goes through."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tests.faults.parts import Part

LOCAL = "local[2,4]"
CLUSTER = "local-cluster[2,1,1024]"


class Checkpoint(enum.Enum):
    """What happens to the checkpoint between a kill and the next start."""

    KEPT = "kept"
    DELETED = "deleted"
    OLDER = "put back to an older copy"


class Moment(enum.Enum):
    """When a driver is killed; within each, the moment is random."""

    AT_START = "while it starts"
    ANNOUNCED = "after its announcement"
    IN_EPOCHS = "some epochs later"


MOMENTS = (Moment.AT_START, Moment.ANNOUNCED, Moment.IN_EPOCHS, Moment.IN_EPOCHS)


@dataclass(frozen=True)
class Phase:
    """One kind of fault, which strikes once at an open transaction and then at random moments.

    :param name: how reports call it.
    :param part: what is killed.
    :param checkpoints: what may happen to the checkpoint after a kill.
    :param master: where the sink's driver runs its tasks.
    """

    name: str
    part: Part
    checkpoints: tuple[Checkpoint, ...] = (Checkpoint.KEPT,)
    master: str = LOCAL

    def __str__(self) -> str:
        return self.name


DRIVER = Phase("driver", Part.DRIVER)
CHECKPOINT_LOST = Phase("driver, checkpoint lost", Part.DRIVER, (Checkpoint.DELETED, Checkpoint.OLDER))
JVM = Phase("JVM", Part.JVM)
EXECUTOR = Phase("executor", Part.EXECUTOR, master=CLUSTER)
WORKER = Phase("Python worker", Part.WORKER, master=CLUSTER)
BACKEND = Phase("Postgres backend", Part.BACKEND)
SERVER = Phase("Postgres", Part.SERVER)
