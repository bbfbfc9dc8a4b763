"""The options that an ``iceberg`` connection may have, what kind each is, and what is refused."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from airflow_provider_sinks.core.connection.alterable import Service


class CatalogKind(enum.StrEnum):
    """Who keeps the pointers to the tables' metadata."""

    JDBC = "jdbc"
    REST = "rest"
    HIVE = "hive"


_OF_CATALOG = """
    catalog database hive.hive2-compatible name oauth2-server-uri port prefix scope sslmode sslrootcert token
    warehouse
    """
_OF_STORAGE = """
    adls.account-host adls.account-key adls.account-name adls.sas-token gcs.oauth2.token gcs.project-id
    gcs.service.host s3.access-key-id s3.connect-timeout s3.endpoint s3.force-virtual-addressing s3.region
    s3.request-timeout s3.role-arn s3.role-session-name s3.secret-access-key s3.session-token
    """
STORAGE = frozenset(_OF_STORAGE.split())
"""PyIceberg's names of what it takes to read and write files."""
ALLOWED = frozenset(_OF_CATALOG.split()) | STORAGE
_JDBC, _REST, _HIVE = CatalogKind.JDBC, CatalogKind.REST, CatalogKind.HIVE
ONLY_OF: Mapping[str, tuple[CatalogKind, ...]] = {
    **dict.fromkeys(("database", "sslmode", "sslrootcert"), (_JDBC,)),
    **dict.fromkeys(("oauth2-server-uri", "prefix", "scope", "token"), (_REST,)),
    "hive.hive2-compatible": (_HIVE,),
}
"""What stands in the extra and means something to some catalogs alone."""
FIELDS_ONLY_OF = {"schema": (_JDBC,), "login": (_JDBC, _REST), "password": (_JDBC, _REST)}
DROPPED = frozenset({"catalog_properties", "__fields__"})
"""What the type's own hook may find there, and a sink does not use."""
REFUSED = {
    "py-catalog-impl": "it names a class to load",
    "py-io-impl": "it names a class to load",
    "io-impl": "it names a class to load",
    "catalog-impl": "it names a class to load",
    "auth": "it names a class to load",
    "rest.signer": "it names a class to load",
    "s3.signer": "it names a class to load",
    "s3.retry-strategy-impl": "it names a class to load",
    "s3.proxy-uri": "a proxy would hear all that is written",
    "type": "write catalog: jdbc, rest or hive",
    "uri": "the address belongs in the connection's own fields",
    "credential": "id and secret belong in login and password, where Airflow hides them",
    "header.Authorization": "use login and password, or token",
    "ssl": "certificates of a REST catalog are not supported yet",
}
SECRETS = frozenset(
    {
        "adls.account-key",
        "adls.sas-token",
        "gcs.oauth2.token",
        "password",
        "s3.secret-access-key",
        "s3.session-token",
        "token",
    }
)
"""Never shown."""
ADDRESSES = frozenset(
    {
        "adls.account-host",
        "adls.account-name",
        "gcs.service.host",
        "host",
        "oauth2-server-uri",
        "s3.endpoint",
        "warehouse",
    }
)
"""They lead to servers, or to the place of the tables, which may name one."""
_ON_S3 = (frozenset({"s3.access-key-id", "s3.secret-access-key"}),)
_ON_AZURE = (frozenset({"adls.account-key"}), frozenset({"adls.sas-token"}))
_ON_GOOGLE = (frozenset({"gcs.oauth2.token"}),)
LOGINS: Mapping[str, tuple[frozenset[str], ...]] = {
    **dict.fromkeys(("s3", "s3a", "s3n", "oss"), _ON_S3),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), _ON_AZURE),
    **dict.fromkeys(("gs", "gcs"), _ON_GOOGLE),
}
"""By the scheme of a location: what logs in to its storage."""
SERVICES = (
    Service(frozenset({"s3.endpoint"}), _ON_S3),
    Service(frozenset({"adls.account-host", "adls.account-name"}), _ON_AZURE),
    Service(frozenset({"gcs.service.host"}), _ON_GOOGLE),
    Service(frozenset({"host", "oauth2-server-uri", "warehouse"}), (*_ON_S3, *_ON_AZURE, *_ON_GOOGLE)),
)
"""A storage without a login of its own is asked with the machine's, and its place is told by the catalog: who
logs in to that is not asked there."""
FILES = frozenset({"sslrootcert"})
"""They name files of the worker."""
HARMLESS = frozenset({"s3.connect-timeout", "s3.request-timeout", "hive.hive2-compatible"})
"""They decide nothing about who hears a secret, nor where rows go."""
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
