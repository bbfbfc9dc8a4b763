"""The waiting half of a deferred ``CheckTopicsSensor``: an alarm clock that looks before it rings.

Nothing blocks the triggerer's event loop: each look runs in a thread of a small pool, imports included, and
makes and closes its own clients there. When the trigger is cancelled, a look that has not begun is dropped,
and one that runs ends by itself within about a minute. A restarted triggerer just looks again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from airflow_provider_sinks.lifecycle.dry_run import DryRun

_LOOKS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="sinks-look")
"""Looks of all triggers of this process: frozen brokers hold these threads, and nobody else's."""

LAST_LOOK_SECONDS = 60.0
"""How long after the deadline a look that has begun may still end; on a worker it would be waited for too."""


class CheckTopicsTrigger(BaseTrigger):
    """Look at a sink's topics now and then; ring when looking from a worker is worth it.

    What rings is no verdict: the sensor looks again on a worker and decides there. So a deferred sensor is
    never weaker than one that is not:

    - A trigger reads one of the two copies of Airflow's memory, the Variable; a worker reads both. No start
      hangs on what was decided here.
    - With less memory a look can say *wait* where a worker would refuse, in one case only: the Variable lost
      the witness, and a topic is hidden. Then the refusal comes at the deadline, where a worker looks
      whatever was seen here.
    - What a triggerer cannot do at all (a connection that only workers have) rings too: the worker judges.

    :param sink: the sink, as plain data without templates and without secrets; connections are read by id.
    :param accept: a one-time answer to a refusal.
    :param deadline: when to ring in any case, in seconds since the epoch; a look that has begun may end.
    :param poke_interval: how long to wait before each look, in seconds.
    :param longest_interval: double the wait after each look, up to this, in seconds; ``None`` never does.
    """

    def __init__(
        self,
        *,
        sink: dict[str, Any],
        deadline: float,
        poke_interval: float,
        accept: str | None = None,
        longest_interval: float | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sink = sink
        self.accept = accept
        self.deadline = deadline
        self.poke_interval = poke_interval
        self.longest_interval = longest_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, which Airflow stores while the task waits."""
        names = ("sink", "accept", "deadline", "poke_interval", "longest_interval")
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and ring once. Called by the triggerer, anew after each of its restarts."""
        why = await self._wait()
        yield TriggerEvent({"why": why, "deadline": self.deadline})

    async def _wait(self) -> str:
        """Return why it is time to look from a worker; a worker has just looked, so waiting comes first."""
        interval = self.poke_interval
        while self._left_seconds > interval:
            await asyncio.sleep(interval)
            why = await self._look()
            if why is not None:
                return why
            if self.longest_interval is not None:
                interval = min(max(2 * interval, 1), max(self.longest_interval, self.poke_interval))
        await asyncio.sleep(max(self._left_seconds, 0))
        return "the time is over"

    async def _look(self) -> str | None:
        """Look once, in a thread, and return why a worker should look now, if it should."""
        looking = asyncio.wrap_future(_LOOKS.submit(self._look_here))
        try:
            seen = await asyncio.wait_for(looking, max(self._left_seconds, 0) + LAST_LOOK_SECONDS)
        except TimeoutError:
            return "the time is over, and the last look has not ended"
        except Exception as error:  # noqa: BLE001  a worker will meet it too, or can do what a triggerer cannot
            return f"looking from the triggerer failed: {type(error).__name__}: {error}"
        self.log.info("%s", seen)
        return None if seen.waits else seen.verdict.primary

    def _look_here(self) -> DryRun:
        from airflow_provider_sinks.arguments import accept_code, parse
        from airflow_provider_sinks.lifecycle.dry_run import dry_run
        from airflow_provider_sinks.metadata.memory import SinkMemory

        spec = parse(self.sink)
        return dry_run(spec, SinkMemory(spec.name, None, self.log), accept_code(self.accept))

    @property
    def _left_seconds(self) -> float:
        return self.deadline - time.time()
