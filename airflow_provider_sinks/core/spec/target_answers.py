"""What a sink is by its target: the spec of each connector overrides what it knows better.

Validation, the decision and the pages of a DAG ask here, and never which kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.redefinition.bearing import Bearing
from airflow_provider_sinks.core.spec.parts import Part

if TYPE_CHECKING:
    from airflow_provider_sinks.core.spec.rules import Rule


class TargetAnswers(Part, ABC):
    """What :class:`.SinkSpec` says by its target alone; it has no option of its own."""

    progress_option: ClassVar[str] = ""
    """The option of the target that names its progress place, if that is none of the sink."""
    instead: ClassVar[Mapping[str, str]] = {}
    """What does the same for it as an option that other targets have."""
    dead_letter_example: ClassVar[str]
    """How a person writes where rows are set aside."""
    bearings: ClassVar[Mapping[str, Bearing]] = {}
    """What a change of each option of the target, and of its dead letters and progress, bears on.

    By path from the top of the spec; over those that all sinks have (:mod:`.redefinition.options`).
    """
    right_target: ClassVar[Any]
    """A target that is right, in the place of one that is not, while the rules between the rest are asked."""

    @property
    def engine_guarantee(self) -> str:
        """What Spark guarantees of the rows, in one sentence, where its own writer writes them.

        Empty where our own protocol holds: exactly once.
        """
        return ""

    @classmethod
    def completed(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was given with what the target takes from elsewhere. Called before it is checked."""
        return dict(data)

    @property
    def target_rules(self) -> tuple[Rule, ...]:
        """The rules between the options of the target and the rest of the sink."""
        return ()

    @property
    def deletes_by(self) -> tuple[str, ...] | None:
        """The columns of the output by which the target takes rows away; ``None`` where it never does.

        Empty where it could, and its options do not say so: its own rules tell.
        """
        return None

    @property
    def replaces_by_key(self) -> bool:
        """Whether its readers take the newest row of a key for all there is of it, as the options say."""
        return False

    @property
    def keeps_one_row_of_a_key(self) -> bool:
        """Whether rows of one key replace each other in the target, or for its readers, as the spec says."""
        return self.replaces_by_key or bool(self.deletes_by)

    @property
    def takes_whole_records(self) -> bool:
        """Whether the target writes a source's records as they are: its options change and add nothing."""
        return False

    @property
    def columns_apart(self) -> tuple[str, ...] | None:
        """The columns of the rows in a target that has them apart from each other, such as a table.

        ``None`` where it has values instead, or only Spark knows the names.
        """
        return None

    @property
    def letters_to_read(self) -> Mapping[str, str] | None:
        """The options of a source that reads the dead letters; ``None`` where they are in none."""
        return None

    @property
    def target_registries(self) -> tuple[str, ...]:
        """The ids of the Airflow connections of schema registries that have schemas of the target."""
        return ()

    @property
    @abstractmethod
    def progress_is_shared(self) -> bool:
        """Whether other sinks may have records in the same progress place."""

    @property
    @abstractmethod
    def resources(self) -> Mapping[Role, str]:
        """The names of outputs and progress place, by what they are to the sink."""

    @abstractmethod
    def creations(self) -> Mapping[Role, Creation]:
        """Return how each of them is made where it is missing."""

    @abstractmethod
    def shown(self) -> Mapping[str, str | None]:
        """Return what of the target a person sees beside its name, in ``airflow sinks show``."""

    @abstractmethod
    def told(self) -> Iterable[str]:
        """Give the lines about the target on the page of its DAG."""
