"""Redis as it is run elsewhere: behind Sentinel and HAProxy, as Valkey, behind TLS, and as a cluster by mistake."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.own_back_ends import coordination_of, on_back_ends
from tests.factories.until import until_true
from tests.fakes.certificates import Certificates, make_certificates
from tests.fakes.redis_failover import failover_redis, has_haproxy
from tests.fakes.redis_server import RedisServer, is_installed, makes_clusters, redis_server

pytestmark = [
    pytest.mark.one_back_end,
    pytest.mark.skipif(not is_installed(), reason="needs redis-server"),
]


@pytest.fixture(autouse=True)
def _own_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)


@pytest.mark.skipif(not has_haproxy(), reason="needs haproxy")
def test_sentinel_promotes_a_replica_behind_one_address(tmp_path: Path) -> None:
    with (
        failover_redis(tmp_path / "redis") as redis,
        on_back_ends(tmp_path / "run", variables={"REDIS_URL": redis.url}) as installed,
        installed.made.operator() as operator,
        installed.made.web() as web,
    ):
        until_true(lambda: coordination_of(web) == "ok")
        assert installed.calls(web, 5) == {200: 5}
        assert installed.doctor()["redis"][0][0] == "ok"
        redis.primary.kill()
        until_true(redis.is_promoted)
        until_true(lambda: coordination_of(web) == "ok")
        assert installed.calls(web, 5) == {200: 5}
        assert not [said for status, said in installed.doctor()["redis_settings"] if status == "error"]
        # A revocation after the failover is in force at the next call.
        former = installed.client["agent_key"]
        new = operator.run("rotate_agent_key", client_id=installed.client["client_id"])
        assert installed.call(web, former) == 401
        assert installed.call(web, new) == 200


@pytest.mark.skipif(shutil.which("valkey-server") is None, reason="needs valkey-server")
def test_valkey_is_a_redis_and_is_called_by_its_name(tmp_path: Path) -> None:
    with (
        redis_server(program="valkey-server") as valkey,
        on_back_ends(tmp_path, variables={"REDIS_URL": valkey.url}) as installed,
        installed.made.web() as web,
    ):
        until_true(lambda: coordination_of(web) == "ok")
        assert installed.calls(web, 5) == {200: 5}
        [(status, said)] = installed.doctor()["redis"]
        assert (status, said.startswith("Valkey ")) == ("ok", True)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path / "good")


@pytest.fixture
def encrypted(certificates: Certificates) -> Iterator[RedisServer]:
    with redis_server(certificates=certificates) as server:
        yield server


def test_web_and_worker_accept_the_certificate_of_the_named_authority(tmp_path: Path, encrypted: RedisServer) -> None:
    with (
        on_back_ends(tmp_path / "run", variables={"REDIS_URL": encrypted.url}) as installed,
        installed.made.web() as web,
        installed.worker() as worker,
    ):
        until_true(lambda: coordination_of(web) == "ok")
        assert installed.calls(web, 5) == {200: 5}
        until_true(lambda: " ready." in worker.log())
        found = installed.doctor()
        assert (found["redis"][0][0], found["redis_tls"][0][0]) == ("ok", "ok")


@pytest.mark.parametrize("wrong", ["another authority", "another address"])
def test_web_and_worker_refuse_a_wrong_certificate(
    tmp_path: Path, encrypted: RedisServer, certificates: Certificates, wrong: str
) -> None:
    url = encrypted.url
    if wrong == "another authority":
        url = url.replace(str(certificates.authority), str(make_certificates(tmp_path / "other").authority))
    else:
        url = url.replace("@127.0.0.1:", "@localhost:")
    with (
        on_back_ends(tmp_path / "run", variables={"REDIS_URL": url}) as installed,
        installed.made.web() as web,
        installed.worker() as worker,
    ):
        assert coordination_of(web) == "degraded"
        assert installed.calls(web, 2) == {200: 2}, "by its own count"
        until_true(lambda: "CERTIFICATE_VERIFY_FAILED" in worker.log())
        assert " ready." not in worker.log()
        [(status, said)] = installed.doctor()["redis"]
        assert status == "error"
        assert said.startswith("The certificate of the Redis at REDIS_URL is refused: ")


@pytest.mark.skipif(not makes_clusters(), reason="needs Redis 7")
def test_a_cluster_that_is_not_declared_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with (
        redis_server(is_cluster=True) as cluster,
        on_back_ends(tmp_path, variables={"REDIS_URL": cluster.url}) as installed,
        installed.made.web() as web,
    ):
        assert installed.calls(web, 5) == {200: 5}
        assert "REDIS_URL leads to a cluster: set REDIS_CLUSTER" in web.log()
        errors = [said for status, said in installed.doctor()["redis_settings"] if status == "error"]
        assert len(errors) == 1
        assert "is a cluster" in errors[0]
