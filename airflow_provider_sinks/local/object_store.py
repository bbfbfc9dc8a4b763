"""A real object store for tests and the demo: S3Proxy, which speaks S3 and keeps each bucket in a folder.

    with ObjectStore.start(folder, BUCKET) as store:
        S3FileSystem(endpoint_override=store.url, access_key=store.keys.id, secret_key=store.keys.secret)

It checks signatures, knows one pair of keys at a time, and has conditional writes, as Amazon's has.
"""

from __future__ import annotations

import secrets
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.ports import LOCALHOST, accepts, free_port
from airflow_provider_sinks.local.processes import Service, java_program

REGION: Final = "us-east-1"
"""Any will do."""
BUCKET: Final = "lake"
"""What the demo and the tests keep their tables in."""
_READY_SECONDS = 120.0
_FORBIDDEN = 403
_QUIET = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %logger %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


@dataclass(frozen=True)
class Keys:
    """By which a client signs what it asks for."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        """Return a pair that nobody had before."""
        return cls(f"key-{secrets.token_hex(4)}", secrets.token_urlsafe(16))


class ObjectStore:
    """One store with its own folder and port.

    :param folder: for its log and its settings.
    :param root: the folder of its buckets.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.keys = Keys.new()
        self.root = root
        self._folder = folder
        self._port = free_port()
        self._service = Service("object store", self._command(), folder)

    @classmethod
    def start(cls, folder: Path, *buckets: str, root: Path | None = None) -> Self:
        """Start a store, and return when it answers, after a few seconds.

        :param buckets: that are made, empty.
        :param root: the buckets of another store, which both have then, by keys of their own.
        """
        store = cls(folder, root or folder / "buckets")
        for bucket in buckets:
            (store.root / bucket).mkdir(parents=True)
        folder.mkdir(exist_ok=True)
        (folder / "logback.xml").write_text(_QUIET)
        store._start()
        return store

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://{LOCALHOST}:{self._port}"

    @property
    def log(self) -> Path:
        """The store's log file."""
        return self._service.log

    def change_keys(self) -> None:
        """Take other keys from now on, and refuse those from before; what is stored stays."""
        self.stop()
        self.keys = Keys.new()
        self._start()

    def stop(self) -> None:
        """End the store."""
        self._service.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _settings(self) -> Path:
        return self._folder / "s3proxy.properties"

    def _start(self) -> None:
        settings = {
            "s3proxy.endpoint": self.url,
            "s3proxy.authorization": "aws-v4",
            "s3proxy.identity": self.keys.id,
            "s3proxy.credential": self.keys.secret,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.root),
        }
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._service.start_until(self._answers, _READY_SECONDS)

    def _command(self) -> list[str]:
        path = ":".join(map(str, jars.resolve(*jars.OBJECT_STORE)))
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        log = f"-Dlogback.configurationFile={self._folder / 'logback.xml'}"
        main = ["org.gaul.s3proxy.Main", "--properties", str(self._settings)]
        return [java_program(), *options, log, "-cp", path, *main]

    def _answers(self) -> bool:
        if not accepts(self._port):
            return False
        try:
            urllib.request.urlopen(self.url, timeout=5)  # noqa: S310  our own
        except urllib.error.HTTPError as error:
            return error.code == _FORBIDDEN  # nobody has signed this
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return False
        return True


def iceberg_extra(store: ObjectStore) -> dict[str, str]:
    """Return the extra of a connection to an Iceberg catalog on Postgres, with its tables in a store."""
    return {
        "warehouse": f"s3://{BUCKET}/warehouse",
        "s3.endpoint": store.url,
        "s3.region": REGION,
        "s3.access-key-id": store.keys.id,
        "s3.secret-access-key": store.keys.secret,
    }


def delta_extra(store: ObjectStore) -> dict[str, str]:
    """Return the extra of a connection to a store with Delta tables."""
    return {
        "aws_endpoint": store.url,
        "aws_allow_http": "true",
        "aws_region": REGION,
        "aws_access_key_id": store.keys.id,
        "aws_secret_access_key": store.keys.secret,
    }
