"""Tells stories two at a time, because a driver leaves a processor idle for much of its start.

All stories that the selected tests are about begin when the first test asks for a chapter; each test then
waits for its own chapter alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tests.faults.world import World

Story = Callable[[World, Collection[str]], Iterator[tuple[str, object]]]
"""Takes the names of the chapters that tests ask for, and yields each with its result."""
Chapter = tuple[str, str]
"""The name of a story, and the name of one of its chapters."""


class Campaign:
    """The stories of one test run.

    :param stories: by name; those that come first begin first.
    :param chapters: which of their chapters tests ask for.
    :param side_by_side: how many stories are told at a time.
    """

    def __init__(
        self, world: World, stories: Mapping[str, Story], chapters: Iterable[Chapter], side_by_side: int
    ) -> None:
        self.results: list[str] = []
        self._world = world
        self._futures: dict[Chapter, Future[Any]] = {chapter: Future() for chapter in chapters}
        self._pool = ThreadPoolExecutor(side_by_side, thread_name_prefix="story")
        for name in stories:
            wanted = {chapter for story, chapter in self._futures if story == name}
            if wanted:
                self._pool.submit(self._tell, name, stories[name], wanted)

    def result(self, chapter: Chapter) -> Any:
        """Wait for a chapter and return its result, or raise what ended its story before."""
        return self._futures[chapter].result()

    def close(self) -> None:
        """Give up what has not begun, and end what runs."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._world.close()
        self._pool.shutdown()

    def _tell(self, name: str, story: Story, wanted: Collection[str]) -> None:
        try:
            for chapter, result in story(self._world, wanted):
                self.results.append(f"{name}, {chapter}: {result}")
                if chapter in wanted:
                    self._futures[name, chapter].set_result(result)
        except BaseException as error:  # noqa: BLE001  raised again in each test that waits for it
            for chapter in wanted:
                if not self._futures[name, chapter].done():
                    self._futures[name, chapter].set_exception(error)
