"""A real Kafka broker for tests and the demo: one node, KRaft, on free ports, up in a few seconds.

It always has a plain listener on which everyone is a super user: for the broker itself and for tests
that arrange things. With ``sasl`` a second listener demands a user, and ``bootstrap`` names that one.
With ``tls`` a further listener is inside TLS, named by ``tls_bootstrap``; with ``sasl`` it wants a user too.

    with KafkaBroker.start(folder) as broker:
        Producer({"bootstrap.servers": broker.bootstrap})
"""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.listeners import (
    Mechanism,
    Sasl,
    Tls,
    sasl_properties,
    tls_properties,
)
from airflow_provider_sinks.local.ports import LOCALHOST, accepts, free_port
from airflow_provider_sinks.local.processes import LocalServiceError, Service, java_program

_READY_SECONDS = 120.0
_SCRAM_ITERATIONS = 4096
_SOON_READY = "-XX:TieredStopAtLevel=1"
_KEY_STORE = "server.pem"
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c{1})%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.kafka.name = kafka
logger.kafka.level = info
"""


class KafkaBroker:
    """One broker with its own folder, which it keeps over restarts, as it keeps its ports."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str],
        sasl: Sasl | None,
        tls: Tls | None = None,
        java: Sequence[str] = (_SOON_READY,),
    ) -> None:
        self.folder = folder
        self.sasl = sasl
        self.tls = tls
        self._plain, self._controller = free_port(), free_port()
        self._secured, self._encrypted = free_port(), free_port()
        self._properties = {**self._listeners(), **properties}
        self._service = Service(
            "kafka", self._java(["-Xmx512m", *java], "kafka.Kafka", "server.properties"), folder
        )

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        sasl: Sasl | None = None,
        tls: Tls | None = None,
        authorizer: bool = False,
        auto_create: bool = False,
        extra: Mapping[str, str] | None = None,
        lasting: bool = False,
    ) -> Self:
        """Start a broker and return when it answers.

        :param folder: for its data, configuration and log; must be empty or missing.
        :param sasl: a second listener that demands a user.
        :param tls: a further listener, inside TLS.
        :param authorizer: users may do only what ACLs allow; the plain listener stays a super user's.
        :param auto_create: create topics that a client asks for.
        :param extra: more broker properties, which win over ours.
        :param lasting: let Java optimise all it can, which pays after minutes: for measuring.
        """
        properties = {"auto.create.topics.enable": str(auto_create).lower()}
        if authorizer:
            properties["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            properties["super.users"] = "User:ANONYMOUS"
        java = () if lasting else (_SOON_READY,)
        broker = cls(folder, {**properties, **(extra or {})}, sasl, tls, java)
        broker._format()
        broker.restart()
        broker._add_scram_users()
        return broker

    @property
    def bootstrap(self) -> str:
        """Where clients connect: the listener that demands a user, if there is one."""
        return f"{LOCALHOST}:{self._secured if self.sasl else self._plain}"

    @property
    def tls_bootstrap(self) -> str:
        """The listener inside TLS, if there is one."""
        return f"{LOCALHOST}:{self._encrypted}"

    @property
    def admin_bootstrap(self) -> str:
        """The plain listener, on which everyone is a super user."""
        return f"{LOCALHOST}:{self._plain}"

    @property
    def log(self) -> Path:
        """The broker's log file."""
        return self._service.log

    @property
    def session(self) -> int:
        """The session of its process."""
        return self._service.pid

    def client_config(self, user: str | None = None) -> dict[str, str | int | float | bool]:
        """Return the librdkafka options of a client.

        :param user: one of the users of ``sasl``; None means the super user.
        """
        if user is None:
            return {"bootstrap.servers": self.admin_bootstrap}
        if self.sasl is None:
            raise LocalServiceError(f'the broker knows no user "{user}"', "it was started without sasl")
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": self.sasl.mechanism,
            "sasl.username": user,
            "sasl.password": self.sasl.users[user],
        }

    def restart(self) -> None:
        """Start the broker on its old ports and data, after ``stop`` or ``kill``."""
        self._service.start_until(self._answers, _READY_SECONDS)

    def stop(self) -> None:
        """End the broker in order."""
        self._service.stop()

    def kill(self) -> None:
        """End the broker at once, as a power cut would."""
        self._service.kill()

    def pause(self) -> None:
        """Freeze the broker: connections stay open, nothing answers."""
        self._service.freeze()

    def resume(self) -> None:
        """Let a frozen broker go on."""
        self._service.thaw()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _listeners(self) -> dict[str, str]:
        secured = {"SECURED": self._secured} if self.sasl else {}
        encrypted = {"ENCRYPTED": self._encrypted} if self.tls else {}
        names = {"PLAIN": self._plain, **secured, **encrypted}
        protocols = "PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_PLAINTEXT,ENCRYPTED:"
        addresses = [f"{name}://{LOCALHOST}:{port}" for name, port in names.items()]
        controller = f"{LOCALHOST}:{self._controller}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAIN",
            "listeners": ",".join([*addresses, f"CONTROLLER://{controller}"]),
            "advertised.listeners": ",".join(addresses),
            "listener.security.protocol.map": protocols + ("SASL_SSL" if self.sasl else "SSL"),
            "log.dirs": str(self.folder / "data"),
            # Messages may bear old times, and would go half a minute after a start, while they are read.
            "log.retention.ms": "-1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # A killed broker is let in again only when its old session has expired.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            **(sasl_properties(self.sasl) if self.sasl else {}),
            **(tls_properties(self.folder / _KEY_STORE) if self.tls else {}),
        }

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.properties").write_text(_LOGGING)
        lines = [f"{name}={_escaped(value)}\n" for name, value in self._properties.items()]
        if self.tls:
            store = self.folder / _KEY_STORE
            store.touch(mode=0o600)
            store.write_text(f"{self.tls.key}\n{self.tls.certificate}\n")
        (self.folder / "server.properties").write_text("".join(lines))
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ["format", f"--cluster-id={cluster}", "--config", "server.properties"]
        command = self._java([_SOON_READY], "kafka.tools.StorageTool", *arguments)
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            output = f"{done.stdout}{done.stderr}".splitlines()
            raise LocalServiceError("cannot format the broker's folder", "\n".join(output[-15:]))

    def _add_scram_users(self) -> None:
        """Add users by the admin API: Kafka's storage tool does not take every password."""
        if self.sasl is None or self.sasl.mechanism is Mechanism.PLAIN:
            return
        how = ScramCredentialInfo(ScramMechanism[self.sasl.mechanism.name], _SCRAM_ITERATIONS)
        users: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, how, password.encode())
            for user, password in self.sasl.users.items()
        ]
        admin = AdminClient({**self.client_config(), "log_level": 0})
        for future in admin.alter_user_scram_credentials(users).values():
            future.result(_READY_SECONDS)

    def _java(self, options: Sequence[str], *arguments: str) -> list[str]:
        class_path = ":".join(map(str, jars.resolve(*jars.KAFKA_BROKER)))
        logging = "-Dlog4j2.configurationFile=log4j2.properties"
        return [java_program(), *options, logging, "-cp", class_path, *arguments]

    def _answers(self) -> bool:
        if not accepts(self._plain):
            return False
        admin = AdminClient({**self.client_config(), "log_level": 0})
        try:
            return bool(admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False


def _escaped(text: str) -> str:
    """Escape a value for a Java properties file."""
    return text.replace("\\", "\\\\")
