"""The errors of sinks: what happened, why, and how to go on.

::

    SinkError                  primary, detail, hint; ``trouble`` says what is tried again (:mod:`.retries`)
    |-- ConfigurationError     the user must change something; carries every problem found
    |-- AuthenticationError    the service refused the credentials
    |-- RefusedError           progress says that going on would lose or repeat rows
    |-- FencedError            a newer start of the same sink took over
    |-- UnavailableError       something could not be reached or seen; a retry may help
    `-- JobFailedError         the job stopped in the middle; a retry resumes exactly where it stopped
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from airflow_provider_sinks.core.retries import RETRIES, Trouble


class ExitCode(enum.IntEnum):
    """How ``sink_job.py`` ends. The operator maps each code to fail or retry."""

    OK = 0
    CONFIGURATION = 64
    REFUSED = 65
    FENCED = 66
    UNAVAILABLE = 69
    FAILED = 70


class SinkError(Exception):
    """The root of all errors that this package raises on purpose.

    :param primary: one short sentence, lower case, no full stop: what happened, to what, by name.
    :param detail: what was seen.
    :param hint: the command or the setting that helps.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    trouble: ClassVar[Trouble] = Trouble.MISTAKE

    def __init__(self, primary: str, detail: str = "", hint: str = "") -> None:
        super().__init__(primary, detail, hint)
        self.primary = primary
        self.detail = detail
        self.hint = hint
        self.connections: tuple[str, ...] = ()

    @property
    def retryable(self) -> bool:
        """Whether another try of the task may help; else a person is needed at once."""
        return RETRIES[self.trouble].task.goes_on()

    def of(self, *conn_ids: str) -> Self:
        """Return this error, which comes from what stands in these connections.

        Whoever changed one of them may have caused it, and may take the change back.
        """
        self.connections = tuple(dict.fromkeys((*self.connections, *conn_ids)))
        return self

    @classmethod
    def told(cls, primary: str, detail: str, hint: str) -> Self:
        """Return an error in the words that one of this kind left somewhere: in a status, in a log."""
        error = cls(primary, hint=hint)
        error.detail = detail  # of a ConfigurationError the text of its problems is left, not the problems
        return error

    def __str__(self) -> str:
        lines = [self.primary]
        if self.detail:
            lines.append(f"Detail: {self.detail}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with what a user wrote.

    :param where: the option, as the user wrote it, such as ``target.kafka.topic``.
    :param what: what is wrong with it.
    :param hint: what to write instead, or empty.
    """

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.hint})" if self.hint else text


class ConfigurationError(SinkError):
    """What the user wrote cannot work; all problems are reported at once.

    :param primary: which object is wrong, such as ``sink "orders" is not valid``.
    :param problems: every problem found, in the order of the input.
    :param hint: what helps for all of them together.
    """

    exit_code = ExitCode.CONFIGURATION

    def __init__(self, primary: str, problems: Sequence[Problem] = (), hint: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__(primary, "\n  ".join(["", *map(str, self.problems)]) if problems else "", hint)

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[Any, ...], dict[str, Any]]:
        return type(self), (self.primary, self.problems, self.hint), vars(self)


class AuthenticationError(SinkError):
    """The service refused the credentials: trying again with the same ones does not help."""

    exit_code = ExitCode.CONFIGURATION


class RefusedError(SinkError):
    """Progress says that going on would lose or repeat rows; a person must choose a way on."""

    exit_code = ExitCode.REFUSED
    trouble = Trouble.REFUSAL


class FencedError(SinkError):
    """A newer start of the same sink took over; this one must stop and must not come back."""

    exit_code = ExitCode.FENCED
    trouble = Trouble.FENCED


class UnavailableError(SinkError):
    """Something could not be reached or seen in time; nothing was decided on a guess."""

    exit_code = ExitCode.UNAVAILABLE
    trouble = Trouble.SILENCE


class JobFailedError(SinkError):
    """The job stopped in the middle. What was committed stays; a retry resumes exactly there."""

    trouble = Trouble.STOPPED


_KINDS: tuple[type[SinkError], ...] = (
    ConfigurationError,
    AuthenticationError,
    RefusedError,
    FencedError,
    UnavailableError,
    JobFailedError,
)
_BY_NAME: Mapping[str, type[SinkError]] = {kind.__name__: kind for kind in _KINDS}
_BY_CODE: Mapping[int, type[SinkError]] = {kind.exit_code: kind for kind in reversed(_KINDS)}
"""Of the kinds with one exit code, the first."""


def kind_of(name: str, exit_code: int = ExitCode.FAILED) -> type[SinkError]:
    """Return the kind of an error that was stored by the name of its class.

    A name that is not ours, or that a newer release has given, means what the exit code says.
    """
    return _BY_NAME.get(name) or kind_of_exit(exit_code)


def kind_of_exit(code: int) -> type[SinkError]:
    """Return the kind that an exit code means; a signal or a code of others is a job that stopped."""
    return _BY_CODE.get(code, JobFailedError)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the hint ``did you mean "..."?`` for a misspelt name, or an empty text."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f'did you mean "{found[0]}"?' if found else ""
