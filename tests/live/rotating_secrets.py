"""A secrets backend that answers each question with another user, as dynamic credentials do."""

from __future__ import annotations

import itertools
import json
import os

from airflow.secrets.base_secrets import BaseSecretsBackend

_READS = itertools.count(1)


class RotatingSecrets(BaseSecretsBackend):
    """Knows the Kafka connections ``src`` and ``dst``; ``ROTATING_SECRETS`` has their extra, user by user."""

    def get_conn_value(self, conn_id: str, team_name: str | None = None) -> str | None:
        del team_name
        if conn_id not in ("src", "dst"):
            return None
        users = json.loads(os.environ["ROTATING_SECRETS"])
        return json.dumps({"conn_type": "kafka", "extra": users[next(_READS) % len(users)]})

    def get_variable(self, key: str, team_name: str | None = None) -> str | None:
        del key, team_name
        return None
