"""What changes between two attempts, and may make no difference: the lookup table, the checkpoint."""

from __future__ import annotations

import random
import shutil

from tests.faults.driver import SinkUnderTest
from tests.faults.feed import Feed
from tests.faults.phases import Checkpoint
from tests.faults.world import Users, World


class Between:
    """Disturbs a sink after each kill, and keeps a copy of the checkpoints as the kill left them."""

    def __init__(self, world: World, sink: SinkUnderTest, feed: Feed, choices: random.Random) -> None:
        self._live = sink.checkpoints
        self._copies = sink.folder / "copies"
        self._users = Users(world.postgres, sink.parsed.name, feed.keys)
        self._random = choices
        self._count = 0
        self._users.change(0)

    def disturb(self, checkpoints: tuple[Checkpoint, ...]) -> Checkpoint:
        """Change the lookup table, do one of these things to the checkpoint, and say which.

        In turns and not at random, so that a few kills are enough for each.
        """
        self._count += 1
        self._users.change(self._count)
        if self._live.exists():
            shutil.copytree(self._live, self._copies / str(self._count))
        what = checkpoints[self._count % len(checkpoints)]
        if what is not Checkpoint.KEPT:
            shutil.rmtree(self._live, ignore_errors=True)
        if what is Checkpoint.OLDER:
            self._put_back()
        return what

    def put_back_oldest(self) -> None:
        """Restore the checkpoints as they were after the first kill."""
        shutil.rmtree(self._live)
        shutil.copytree(self._copies / "1", self._live)

    def lose_checkpoints(self) -> None:
        """Delete all checkpoints."""
        shutil.rmtree(self._live)

    def _put_back(self) -> None:
        """Restore the checkpoints as they were after one of the two kills before the newest."""
        copies = [self._copies / str(older) for older in (self._count - 2, self._count - 1)]
        there = [copy for copy in copies if copy.exists()]
        if there:
            shutil.copytree(self._random.choice(there), self._live)
