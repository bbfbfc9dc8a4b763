"""``pause``, ``resume``, ``restart``, ``rewind``, ``reset`` and ``drop``.

What destroys or stops something asks first, and shows the plan that it would carry out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_provider_sinks.cli.frame import command, confirm, show_one, show_text, sink_homes, tell
from airflow_provider_sinks.core.lifecycle.new_generation import Output, Reset
from airflow_provider_sinks.core.lifecycle.rewind_request import RewindRequest
from airflow_provider_sinks.core.lifecycle.steps import Plan
from airflow_provider_sinks.lifecycle.verbs import SinkVerbs


@command
def pause(options: argparse.Namespace) -> None:
    """Let nothing start a sink, and end what runs; asks where other sinks are paused with it."""
    with _verbs(options, ask=_asks_for_others(options)) as verbs:
        _show(verbs.pause(options.sink), options)


@command
def resume(options: argparse.Namespace) -> None:
    """Let a sink be started again."""
    with _verbs(options) as verbs:
        _show(verbs.resume(options.sink), options)


@command
def restart(options: argparse.Namespace) -> None:
    """End the driver of a sink and start another."""
    with _verbs(options) as verbs:
        _show(verbs.restart(options.sink), options)


@command
def rewind(options: argparse.Namespace) -> None:
    """Let a stopped sink read a part of its source again."""
    ask = RewindRequest.parse(
        offsets=options.offsets,
        time=options.time,
        epoch=options.epoch,
        generation=options.generation,
        skip=options.skip,
    )
    with _verbs(options, ask=confirm(options)) as verbs:
        _show(verbs.rewind(options.sink, ask), options)


@command
def reset(options: argparse.Namespace) -> None:
    """Let a stopped sink begin anew."""
    ask = Reset(Output(options.data), Output(options.dead_letter))
    with _verbs(options, ask=confirm(options)) as verbs:
        _show(verbs.reset(options.sink, ask), options)


@command
def drop(options: argparse.Namespace) -> None:
    """Stop a sink and forget it."""
    with _verbs(options, ask=confirm(options)) as verbs:
        _show(verbs.drop(options.sink, options.delete_topic), options)


@contextmanager
def _verbs(options: argparse.Namespace, ask: Callable[[Plan], None] | None = None) -> Iterator[SinkVerbs]:
    with sink_homes(options) as homes:
        done = (lambda text: tell(f"done: {text}")) if options.output in ("table", "plain") else _silent
        yield SinkVerbs(homes, dry_run=options.dry_run, confirm=ask or _silent, say=done)


def _asks_for_others(options: argparse.Namespace) -> Callable[[Plan], None]:
    ask = confirm(options)

    def ask_for_others(plan: Plan) -> None:
        if any(getattr(step, "others", ()) for step in plan.steps):
            ask(plan)

    return ask_for_others


def _silent(_: object) -> None:
    """Say nothing, ask nothing."""


def _show(plan: Plan, options: argparse.Namespace) -> None:
    if options.output in ("table", "plain"):
        show_text(f"dry run: {plan}" if options.dry_run else plan.what)
    else:
        show_one({**plan.to_mapping(), "dry_run": options.dry_run}, options.output)
