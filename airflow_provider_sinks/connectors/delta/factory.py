"""What makes the writers of one run into Delta tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from airflow_provider_sinks.connectors.delta.layout import TablePlan
from airflow_provider_sinks.connectors.delta.storage import DeltaFiles
from airflow_provider_sinks.connectors.table_format.factory import StagingFactory
from airflow_provider_sinks.core.decision.facts import Role

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.delta.data_files import DeltaDataFiles
    from airflow_provider_sinks.connectors.table_format.data_files import Announce

STAGED: Final = "_sinks_staged"
"""The folder of stages; VACUUM leaves folders alone whose names begin so."""


@dataclass(frozen=True, kw_only=True)
class DeltaWriterFactory(StagingFactory):
    """See :class:`.factory.StagingFactory`.

    :param data: the table of the rows.
    :param dead: the table of what is set aside.
    """

    data: TablePlan
    dead: TablePlan | None

    @property
    def location(self) -> str:
        """Where the table of the rows lies."""
        return self.data.root

    @property
    def writes_keys(self) -> bool:
        """No: a merge compares the keys of the rows."""
        return False

    def files(
        self, role: Role, names: tuple[str, ...], announce: Announce, *, is_of_keys: bool
    ) -> DeltaDataFiles:
        """Return the files of one writer for one table in one epoch.

        Rows that replace others are merged from files beside the table. All else becomes part of it as it is.
        """
        from airflow_provider_sinks.connectors.delta.data_files import DeltaDataFiles

        del is_of_keys
        plan = self.data if role is Role.DATA else self.dead
        assert plan is not None  # noqa: S101  the runtime stops before it gives dead letters
        is_merged = role is Role.DATA and bool(self.key)
        folder = f"{plan.root}/{STAGED}/{self.sink}/{self.run}" if is_merged else plan.root
        files = cast("DeltaFiles", self.stages.files)
        return DeltaDataFiles(plan, role, names, files, announce, folder=folder, is_split=not is_merged)
