"""The steps of an alteration in words: a dry run prints them, and a run prints and does them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from airflow_provider_sinks.core.alter.dependents import Dependent
from airflow_provider_sinks.core.alter.steps import Step, Wishes

_SHOWN_MAX = 20


@dataclass(frozen=True)
class Scene:
    """What the words are about.

    :param changed: the names of the options that change; no values.
    :param watch_seconds: how long dependents are waited for.
    :param noted: the sinks that a try before this one found running; empty before the change.
    """

    conn_id: str
    before_id: str
    changed: tuple[str, ...]
    dependents: tuple[Dependent, ...]
    watch_seconds: float
    noted: tuple[str, ...] = ()

    def is_watched(self, dependent: Dependent) -> bool:
        """Return whether a sink is waited for."""
        return dependent.sink in self.noted if self.noted else dependent.is_watched


def report(steps: Sequence[Step], scene: Scene, wishes: Wishes) -> str:
    """Return the steps, numbered, and which sinks they concern."""
    return "\n".join(_lines(steps, scene, wishes))


def say(step: Step, scene: Scene) -> str:
    """Return a step in words."""
    conn, before = f"connection {scene.conn_id}", f"connection {scene.before_id}"
    watched = [dependent.sink for dependent in scene.dependents if scene.is_watched(dependent)]
    known = [dependent.sink for dependent in scene.dependents if dependent.spec is not None]
    wait = f"wait up to {scene.watch_seconds:g} s until they run"
    return {
        Step.READ: f"read {conn}, and see that it is the one that workers get",
        Step.VALIDATE: f"check {conn} with its new options: {_names(scene.changed)}",
        Step.PREFLIGHT: f"check the sinks that use it with them: {_names(known)}",
        Step.KEEP: f"keep the old options as {before}",
        Step.COMMIT: f"compare again, and change {conn} in one request",
        Step.WATCH: f"{wait} on the new options: {_names(watched)}",
        Step.UNDO: f"put the old options of {conn} back",
        Step.WATCH_OLD: f"{wait} on the old options: {_names(watched)}",
        Step.FORGET: f"delete {before}",
    }[step]


def _lines(steps: Sequence[Step], scene: Scene, wishes: Wishes) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        yield f"  {number} of {len(steps)}  {step:<9}  {say(step, scene)}"
    if Step.WATCH in steps:
        yield "  if one does not: " + (
            f"{say(Step.UNDO, scene)}, once, and wait again"
            if wishes.rollback
            else "keep the new options all the same (rollback=False)"
        )
    for dependent in scene.dependents:
        if not scene.is_watched(dependent):
            yield f"  not waited for: sink {dependent.sink} {dependent.why_unwatched()}"
        if dependent.spec is None and Step.PREFLIGHT in steps:
            yield f"  not checked: sink {dependent.sink} is only known when its task runs"
    yield "  sinks of other Airflows, and sinks without an asset, are not seen from here"


def _names(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN_MAX])
    more = len(names) - _SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown or "none"
