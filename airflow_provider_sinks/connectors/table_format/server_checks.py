"""The addresses of servers that a connection names beside its own."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from airflow_provider_sinks.clients.reach import Trail, follow, resolve
from airflow_provider_sinks.connectors.connection_checks import Validation
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.checks.network import ServerFacts, Stop

_FURTHER = "further addresses"


def further_servers(
    validation: Validation, conn_id: str, servers: Mapping[str, tuple[str, int]]
) -> Generator[Check, None, bool]:
    """Judge the addresses of other servers: of tokens, and of the storage. They are looked up, not visited.

    One whose name has no address here may have one where the driver runs.

    :param servers: host and port by the option that names them.
    """
    checks = Checks(conn_id, Family.NETWORK)
    if not servers:
        return True
    facts = {name: _looked_up(place, validation) for name, place in servers.items()}
    told = "; ".join(f"{name}: {one.why or ', '.join(one.addresses)}" for name, one in facts.items())
    if any(one.stopped is Stop.FORBIDDEN for one in facts.values()):
        yield checks.fails(_FURTHER, told, Stop.FORBIDDEN.hint)
        return False
    if any(one.stopped is not None for one in facts.values()):
        yield checks.unknown(_FURTHER, told, Stop.NO_ADDRESS.hint)
    else:
        yield checks.passes(_FURTHER, told)
    return True


def _looked_up(place: tuple[str, int], validation: Validation) -> ServerFacts:
    def go(trail: Trail) -> None:
        resolve(*place, trail)

    return follow(f"{place[0]}:{place[1]}", validation.deadline, go)
