"""The way to a server: where it ends, told by servers that are wrong in one thing each."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.clients.time_limit import Deadline
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.preflight import reach as kafka_reach
from airflow_provider_sinks.connectors.postgres import survey as postgres_survey
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.checks.check import Outcome, Report
from airflow_provider_sinks.core.checks.network import ServerFacts, Stop
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.certificates import DAY, Authority, Pair

SECRET = b"AKIA-the-machines-own-secret"
Answer = Callable[[socket.socket], None]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@contextlib.contextmanager
def server(answer: Answer) -> Iterator[str]:
    """Answer one connection after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, answer), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _serve(listener: socket.socket, answer: Answer) -> None:
    with contextlib.suppress(OSError):
        while True:
            connected, _ = listener.accept()
            with contextlib.suppress(OSError), connected:
                answer(connected)


def hangs_up(connected: socket.socket) -> None:
    connected.recv(100)


def says(what: bytes) -> Answer:
    def answer(connected: socket.socket) -> None:
        connected.recv(100)
        connected.sendall(what)

    return answer


def in_tls(pair: Pair, folder: Path, wants: Authority | None = None) -> Answer:
    """Shake hands, and hang up at the first question.

    :param wants: who must have signed the certificate of the client.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = folder / "server.pem"
    file.write_text(f"{pair.certificate}{pair.key}")
    context.load_cert_chain(file)
    if wants:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=wants.pem)

    def answer(connected: socket.socket) -> None:
        with context.wrap_socket(connected, server_side=True) as secured:
            secured.recv(100)

    return answer


def kafka(address: str, **extra: str) -> KafkaOptions:
    options = {"bootstrap.servers": address, **{name.replace("_", "."): v for name, v in extra.items()}}
    return KafkaOptions.from_connection_extra(options, "k")


def kafka_stop(address: str, **extra: str) -> tuple[Stop | None, str]:
    (facts,) = kafka_reach.reach(kafka(address, **extra), Deadline(5)).servers
    return facts.stopped, facts.why


def postgres(address: str, **extra: str) -> PostgresOptions:
    host, _, port = address.rpartition(":")
    fields = {"host": host, "port": int(port), "login": "me", "password": "x", "schema": "db"}
    return PostgresOptions.from_connection("pg", **fields, extra=extra)  # type: ignore[arg-type]  # as Airflow's


def postgres_reach(address: str, **extra: str) -> ServerFacts:
    return postgres_survey.reach(postgres(address, **extra), Deadline(5))


def outcomes(report: Report) -> dict[str, Outcome]:
    return {check.name: check.outcome for check in report.checks}


HTTP = b"HTTP/1.1 200 OK\r\n\r\n" + SECRET


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        pytest.param(hangs_up, Stop.WANTS_TLS, id="hangs up"),
        pytest.param(says(HTTP), Stop.OTHER_PROTOCOL, id="http"),
        pytest.param(
            says(b"\0\0\0\x08\0\0\0\x02" + SECRET), Stop.OTHER_PROTOCOL, id="another question's answer"
        ),
        pytest.param(says(b"\0\0\0\x06\0\0\0\x01\0\0"), Stop.OTHER_PROTOCOL, id="cut off"),
        pytest.param(says(b"\x15\x03\x03\0\x02\x02\x50"), Stop.WANTS_TLS, id="tls alert"),
        pytest.param(says(b"\0\0\0\x10\0\0\0\x01\0\0\0\0\0\1\0\3\0\0\0\7"), Stop.TOO_OLD, id="old kafka"),
    ],
)
def test_what_is_no_broker_is_named_and_its_answer_is_shown_nowhere(answer: Answer, stop: Stop) -> None:
    with server(answer) as address:
        options = kafka(address)
        report = validate({"k": options}, seconds=5)

    (failed,) = report.failed
    assert (failed.name, failed.hint) == ("protocol", kafka_reach.WAY.hint(stop))
    assert SECRET.decode() not in report.table()
    assert "HTTP/1.1" not in report.table()
    assert outcomes(report)["cluster"] is Outcome.SKIPPED


def test_a_port_without_a_server_is_refused_and_may_be_open_later() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        report = validate({"k": kafka(address)}, seconds=5)

    (failed,) = report.failed
    assert (failed.name, failed.retryable, failed.detail) == (
        "TCP",
        True,
        f"{address}: the connection was refused",
    )


def test_a_name_without_an_address_is_named() -> None:
    assert kafka_stop("no-such-host.invalid:9092")[0] is Stop.NO_ADDRESS


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254:80",
        "[fe80::1]:9092",
        "[::ffff:169.254.169.254]:80",
        "[64:ff9b::a9fe:a9fe]:80",
        "[fd00:ec2::254]:80",
        "100.100.100.200:80",
        "168.63.129.16:80",
        "0.0.0.0:9092",
        "2852039166:80",  # 169.254.169.254 as one number
    ],
)
def test_nothing_is_sent_to_a_metadata_service(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("was connected"))

    report = validate({"k": kafka(address)}, seconds=5)

    (failed,) = report.failed
    assert (failed.name, failed.retryable, failed.hint) == ("name resolution", False, Stop.FORBIDDEN.hint)
    assert outcomes(report)["TCP"] is Outcome.SKIPPED


def test_nothing_is_sent_to_a_metadata_service_as_a_database() -> None:
    report = validate({"pg": postgres("169.254.169.254:5432")}, seconds=5)

    assert [check.name for check in report.failed] == ["name resolution"]


def test_one_server_of_two_is_enough_and_the_other_is_named(authority: Authority, tmp_path: Path) -> None:
    with server(in_tls(authority.sign(), tmp_path)) as well, server(hangs_up) as ill:
        options = kafka(f"{ill},{well}", security_protocol="ssl", ssl_ca_pem=authority.pem)
        report = validate({"k": options}, seconds=5)

    found = {check.name: check for check in report.checks}
    assert found["TLS"].outcome is Outcome.PASS
    assert f"but {ill}: the server did not answer in TLS" in found["TLS"].detail


@pytest.mark.parametrize(
    ("made", "stop"),
    [
        pytest.param({"begins": -2 * DAY, "ends": -DAY}, Stop.EXPIRED, id="expired"),
        pytest.param({"begins": DAY}, Stop.NOT_YET_VALID, id="not yet valid"),
        pytest.param({"address": "127.0.0.9"}, Stop.OTHER_HOST, id="of another host"),
    ],
)
def test_a_certificate_that_does_not_pass_says_why(
    authority: Authority, tmp_path: Path, made: dict[str, Any], stop: Stop
) -> None:
    with server(in_tls(authority.sign(**made), tmp_path)) as place:
        found = kafka_stop(place, security_protocol="ssl", ssl_ca_pem=authority.pem)

    assert found[0] is stop, found


def test_a_certificate_of_a_stranger_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    with server(in_tls(Authority().sign(), tmp_path)) as place:
        stop, why = kafka_stop(place, security_protocol="ssl", ssl_ca_pem=authority.pem)

    assert stop is Stop.NOT_TRUSTED, why


def test_a_certificate_that_ends_soon_is_worth_a_word(authority: Authority, tmp_path: Path) -> None:
    with server(in_tls(authority.sign(ends=5 * DAY), tmp_path)) as place:
        options = kafka(place, security_protocol="ssl", ssl_ca_pem=authority.pem)
        report = validate({"k": options}, seconds=5)

    (found,) = [check for check in report.checks if check.name == "certificate"]
    assert found.outcome is Outcome.UNKNOWN
    assert "for 4 more days" in found.detail


def test_a_server_that_wants_a_certificate_of_ours_says_so(authority: Authority, tmp_path: Path) -> None:
    with server(in_tls(authority.sign(), tmp_path, wants=authority)) as place:
        stop, why = kafka_stop(place, security_protocol="ssl", ssl_ca_pem=authority.pem)

    assert stop is Stop.OUR_CERTIFICATE, why


def test_a_certificate_of_ours_is_shown_to_the_server(authority: Authority, tmp_path: Path) -> None:
    own = authority.sign()
    with server(in_tls(authority.sign(), tmp_path, wants=authority)) as place:
        stop, _ = kafka_stop(
            place, security_protocol="ssl", ssl_ca_pem=authority.pem, ssl_certificate_pem=own.certificate,
            ssl_key_pem=own.key,
        )  # fmt: skip

    assert stop is Stop.NO_ANSWER  # it hung up at the first question, long after the handshake


def test_a_key_store_is_shown_to_the_server(authority: Authority, tmp_path: Path) -> None:
    store = tmp_path / "own.p12"
    store.write_bytes(authority.sign().key_store(b"secret"))
    with server(in_tls(authority.sign(), tmp_path, wants=authority)) as place:
        own = {"ssl_keystore_location": str(store), "ssl_keystore_password": "secret"}
        stop, _ = kafka_stop(place, security_protocol="ssl", ssl_ca_pem=authority.pem, **own)
        wrong = [{"ssl_keystore_password": "wrong"}]
        wrong += [{"ssl_keystore_location": str(path)} for path in (tmp_path, tmp_path / "absent")]
        said = {
            kafka_stop(place, security_protocol="ssl", ssl_ca_pem=authority.pem, **{**own, **change})
            for change in wrong
        }

    assert stop is Stop.NO_ANSWER
    ((locked, why),) = said  # in the same words, whether the file is there or not
    assert (locked, why.partition(":")[0]) == (Stop.OUR_CERTIFICATE, "ssl.keystore.location cannot be used")


def test_a_host_name_is_not_compared_where_the_connection_says_so(
    authority: Authority, tmp_path: Path
) -> None:
    with server(in_tls(authority.sign("127.0.0.9"), tmp_path)) as place:
        anyone = {"ssl_endpoint_identification_algorithm": "none"}
        stop, _ = kafka_stop(place, security_protocol="ssl", ssl_ca_pem=authority.pem, **anyone)

    assert stop is Stop.NO_ANSWER


@pytest.mark.parametrize(
    ("answer", "mode", "stop"),
    [
        pytest.param(says(b"N"), "require", Stop.NO_TLS, id="no tls"),
        pytest.param(says(b"N"), "prefer", None, id="tls is only preferred"),
        pytest.param(says(b"N"), "disable", None, id="no tls wanted"),
        pytest.param(says(HTTP), "prefer", Stop.OTHER_PROTOCOL, id="http"),
        pytest.param(hangs_up, "prefer", Stop.NO_ANSWER, id="hangs up"),
        pytest.param(says(b"S" + HTTP), "require", Stop.NO_TLS, id="no tls after all"),
    ],
)
def test_what_is_no_postgres_is_named(answer: Answer, mode: str, stop: Stop | None) -> None:
    with server(answer) as address:
        facts = postgres_reach(address, sslmode=mode)

    assert facts.stopped is stop, facts


def test_a_database_without_tls_is_not_said_to_have_it() -> None:
    with server(says(b"N")) as address:
        report = validate({"pg": postgres(address, sslmode="prefer")}, seconds=5)

    assert {check.name: check.outcome for check in report.checks}["TLS"] is Outcome.SKIPPED


def test_the_time_of_all_checks_is_bounded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        options = {f"k{number}": kafka(address) for number in range(5)}
        report = validate(options, seconds=1)

    assert sum(check.seconds for check in report.checks) < 3
    assert [check.name for check in report.failed] == ["protocol", *["further checks"] * 4]


def test_the_source_is_validated_first_because_it_names_the_writers_of_the_target() -> None:
    spec = SinkSpec.parse({"name": "s", "source": "z/in", "target": "a/out"})

    extra = {"bootstrap.servers": "127.0.0.1:1"}
    given = {name: KafkaOptions.from_connection_extra(extra, name) for name in ("a", "z")}

    report = validate(given, spec, seconds=5)

    assert list(dict.fromkeys(check.subject for check in report.checks)) == ["z", "a"]


def files_that_are_none(folder: Path) -> Iterator[str]:
    """Name what is no certificate, no key and no list: it is not there, or it is something else."""
    (folder / "text").write_text("nothing of the kind")
    for name in ("absent", "text", "."):
        yield str(folder / name)


@pytest.mark.parametrize("option", ["sslrootcert", "sslcert", "sslkey"])
def test_a_file_of_a_database_is_refused_in_the_same_words_whether_it_is_there_or_not(
    authority: Authority, option: str, tmp_path: Path
) -> None:
    own = tmp_path / "own.pem"
    own.write_text(authority.sign().certificate)
    given = {"sslmode": "require", "sslcert": str(own)}
    with server(says(b"S")) as place:
        said = {
            postgres_reach(place, **{**given, option: path}).why for path in files_that_are_none(tmp_path)
        }

    assert len(said) == 1
    assert said.pop().startswith("a file that the connection names cannot be used by this worker")


def test_a_list_of_a_database_that_cannot_be_used_is_told_by_nothing(
    authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text(authority.pem)
    given = {"sslmode": "verify-ca", "sslrootcert": str(tmp_path / "ca.pem")}
    handshake = in_tls(authority.sign(), tmp_path)

    def after_yes(connected: socket.socket) -> None:
        says(b"S")(connected)
        handshake(connected)

    with server(after_yes) as place:
        said = {
            (failed.name, failed.detail)
            for path in files_that_are_none(tmp_path)
            for failed in validate({"pg": postgres(place, sslcrl=path, **given)}, seconds=30).failed
        }

    ((check, detail),) = said
    assert check == "authentication"  # libpq read the list, or not, and shook hands
    assert str(tmp_path) not in detail


def test_a_folder_with_a_socket_is_refused_in_the_same_words_whether_it_is_there_or_not(
    tmp_path: Path,
) -> None:
    fields: dict[str, Any] = {"port": 5432, "login": "me", "password": "x", "schema": "db", "extra": {}}
    said = {
        failed.detail.replace(str(path), "FOLDER")
        for path in (tmp_path, tmp_path / "absent")
        for failed in validate(
            {"pg": PostgresOptions.from_connection("pg", host=str(path), **fields)}, seconds=5
        ).failed
    }

    assert len(said) == 1
