"""What a file of sinks may say about the DAG of a sink, beside the sink itself.

It is no part of the sink: it does not travel to the job, and changing it does not change the sink's digest.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr, WithJsonSchema

from airflow_provider_sinks.core.spec.fields import Text
from airflow_provider_sinks.core.spec.parts import Part
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.schedules import preset_hint

LINK_PATTERN = r"^(https?://|mailto:)[^\s]+$"


def _link(value: object) -> object:
    if isinstance(value, str) and not re.match(LINK_PATTERN, value):
        raise UnfitError(f"{value!r} is no link", "https://... or mailto:...")
    return value


def _schedule(value: str) -> str:
    if (hint := preset_hint(value)) is not None:
        raise UnfitError(f"{value!r} is no preset of Airflow", hint)
    return value


Link = Annotated[
    StrictStr, BeforeValidator(_link), WithJsonSchema({"type": "string", "pattern": LINK_PATTERN})
]


class DagOptions(Part):
    """The DAG of a sink: what is left out is as ``sink_dag()`` has it."""

    model_config = ConfigDict(title="Dag")

    schedule: Annotated[Text, AfterValidator(_schedule)] | None = Field(
        default=None, description="cron, or a preset such as @hourly"
    )
    owner: Text | None = None
    owner_link: Link | None = None
    tags: tuple[Text, ...] | None = None
    description: Text | None = None
    check_topics: StrictBool | None = None
