"""The proxies' files before several web processes: deploy/nginx.conf in a real nginx, deploy/envoy.yaml, and compose.

Spec: docs/many-processes.md
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

import httpx
import pytest
import yaml

from gateway.supervisor.services import KEEP_ALIVE_S
from tests.vendors.processes import PLAIN_HTTP, TETHER, free_port, stop

ROOT = Path(__file__).resolve().parents[2]
NGINX = (ROOT / "deploy" / "nginx.conf").read_text()
pytestmark = pytest.mark.one_back_end
with_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
START_DEADLINE_S = 20.0


class Process:
    """Stands for a web process: it answers its number and the headers that it got, refuses the head, or hangs up."""

    def __init__(self, number: int) -> None:
        process = self
        self.requests = 0
        self.drops = False
        self.refuses = False
        self.connections: list[socket.socket] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65_536  # head and body in one packet

            def do_POST(self) -> None:
                process.requests += 1
                if process.refuses:
                    self.send_response(401)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    self.close_connection = True
                    return
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if process.drops:
                    self.close_connection = True
                    return
                self.send_response(200)
                for name in ("X-Forwarded-For", "X-Forwarded-Proto", "Host", "Authorization"):
                    self.send_header(f"Got-{name}", self.headers.get(name, ""))
                self.send_header("Content-Length", "1")
                self.end_headers()
                self.wfile.write(str(number).encode())

            def do_GET(self) -> None:
                self.do_POST()

            def do_DELETE(self) -> None:
                self.do_POST()

            def setup(self) -> None:
                super().setup()
                process.connections.append(self.connection)

            def log_message(self, *args: object) -> None:
                return

        self.server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """It accepts no connection any more, and closes those that it has."""
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    made = [Process(number) for number in range(4)]
    yield made
    for process in made:
        with contextlib.suppress(OSError):
            process.end()


@pytest.fixture
def client(processes: list[Process], tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of nginx with the file of the repository; addresses and folders are those of the test."""
    port = free_port()
    servers = "\n".join(f"server 127.0.0.1:{process.port};" for process in processes)
    text = NGINX
    for before, after in (("server web:8000;", servers), ("listen 8080;", f"listen 127.0.0.1:{port};")):
        assert text.count(before) == 1
        text = text.replace(before, after)
    path = tmp_path / "nginx.conf"
    path.write_text(text.replace("/tmp/", f"{tmp_path}/"))
    tmp_path.chmod(0o777)  # a worker of root's is another user
    command = ["nginx", "-p", str(tmp_path), "-c", str(path), "-g", "daemon off; master_process off;"]
    checked = subprocess.run([*command[:-2], "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    started = subprocess.Popen(
        [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        limits = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", **PLAIN_HTTP, timeout=20.0, limits=limits) as made:
            _wait_until_it_answers(made, started)
            yield made
    finally:
        stop(started)


def _wait_until_it_answers(client: httpx.Client, started: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while True:
        with contextlib.suppress(httpx.TransportError):
            client.get("/")
            return
        assert started.poll() is None, "nginx has ended"
        assert time.monotonic() < deadline, "nginx does not answer"
        time.sleep(0.01)


def post(client: httpx.Client, bearer: str | None, **headers: str) -> httpx.Response:
    given = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    return client.post("/v1/mcp", content=b"{}", headers={**given, **headers})


def homes(client: httpx.Client, bearers: list[str]) -> Mapping[str, str]:
    """The process that answers each bearer; it is the same for both of its requests."""
    found = {bearer: post(client, bearer).text for bearer in bearers}
    assert {bearer: post(client, bearer).text for bearer in bearers} == found
    return found


@with_nginx
def test_a_caller_stays_with_one_process_and_callers_are_spread(client: httpx.Client) -> None:
    assert set(homes(client, [f"key-{number}" for number in range(60)]).values()) == {"0", "1", "2", "3"}


@with_nginx
def test_requests_without_a_bearer_are_spread(client: httpx.Client) -> None:
    assert len({post(client, None).text for _ in range(60)}) == 4


@with_nginx
def test_only_the_callers_of_a_process_that_has_ended_move(client: httpx.Client, processes: list[Process]) -> None:
    bearers = [f"key-{number}" for number in range(60)]
    before = homes(client, bearers)
    processes[2].end()
    after = homes(client, bearers)
    assert "2" not in after.values()
    assert {bearer: home for bearer, home in after.items() if before[bearer] != "2"} == {
        bearer: home for bearer, home in before.items() if home != "2"
    }


@with_nginx
def test_a_call_that_was_sent_is_never_sent_again(client: httpx.Client, processes: list[Process]) -> None:
    """The process took it and ended the connection: the vendor may have acted."""
    for process in processes:
        process.requests, process.drops = 0, True
    assert post(client, "key").status_code == 502
    assert sum(process.requests for process in processes) == 1


@with_nginx
@pytest.mark.parametrize(("method", "path"), [("GET", "/oidc/callback/?code=once"), ("DELETE", "/api/orgs/1/teams/2")])
def test_a_page_or_a_deletion_that_was_sent_is_never_sent_again(
    client: httpx.Client, processes: list[Process], method: str, path: str
) -> None:
    for process in processes:
        process.requests, process.drops = 0, True
    assert client.request(method, path).status_code == 502
    assert sum(process.requests for process in processes) == 1


@with_nginx
def test_the_gateway_refuses_a_head_before_its_body_has_come(client: httpx.Client, processes: list[Process]) -> None:
    for process in processes:
        process.refuses = True
    address = (client.base_url.host, client.base_url.port)
    with socket.create_connection(address, timeout=START_DEADLINE_S) as connection:
        connection.sendall(b"POST /v1/mcp HTTP/1.1\r\nHost: gateway.example\r\nContent-Length: 4194304\r\n\r\n{")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")


@with_nginx
def test_the_gateway_learns_of_the_client_and_not_of_the_proxy(client: httpx.Client) -> None:
    direct = post(client, "key").headers
    assert (direct["Got-X-Forwarded-For"], direct["Got-X-Forwarded-Proto"]) == ("127.0.0.1", "http")
    assert direct["Got-Authorization"] == "Bearer key"
    assert direct["Got-Host"] == client.base_url.netloc.decode()
    behind_tls = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https", "Host": "gateway.example"}
    through = post(client, "key", **behind_tls).headers
    assert through["Got-X-Forwarded-For"] == "203.0.113.7, 127.0.0.1"
    assert (through["Got-X-Forwarded-Proto"], through["Got-Host"]) == ("https", "gateway.example")


def test_both_proxies_let_idle_connections_go_before_the_gateway_does() -> None:
    assert "keepalive_timeout 60s;" in NGINX
    assert _seconds(envoy_cluster()["typed_extension_protocol_options"][HTTP]["common_http_protocol_options"]) == 60
    assert KEEP_ALIVE_S > 60


def test_envoy_hashes_the_bearer_and_repeats_no_call() -> None:
    route = _only(_only(connection_manager()["route_config"]["virtual_hosts"])["routes"])["route"]
    assert envoy_cluster()["lb_policy"] == "RING_HASH"
    assert route["hash_policy"] == [{"header": {"header_name": "authorization"}}]
    assert route["retry_policy"]["retry_on"] == "connect-failure"
    assert _only(route["retry_policy"]["retry_host_predicate"])["name"] == "envoy.retry_host_predicates.previous_hosts"
    mutations = _only(connection_manager()["early_header_mutation_extensions"])["typed_config"]["mutations"]
    assert {"x-envoy-retry-on", "x-envoy-max-retries"} <= {each["remove"] for each in mutations}
    assert route["timeout"] == "330s"


HTTP = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def envoy_cluster() -> dict[str, Any]:
    file = yaml.safe_load((ROOT / "deploy" / "envoy.yaml").read_text())
    found: dict[str, Any] = _only(file["static_resources"]["clusters"])
    return found


def connection_manager() -> dict[str, Any]:
    listener = _only(yaml.safe_load((ROOT / "deploy" / "envoy.yaml").read_text())["static_resources"]["listeners"])
    found: dict[str, Any] = _only(_only(listener["filter_chains"])["filters"])["typed_config"]
    return found


def _only(found: list[Any]) -> Any:
    [one] = found
    return one


def _seconds(options: dict[str, Any]) -> int:
    return int(str(options["idle_timeout"]).removesuffix("s"))


# --- compose ----------------------------------------------------------------------------------------------------------


class ComposeLoader(yaml.SafeLoader):
    """Knows compose's tag for a value that replaces that of the file before."""


ComposeLoader.add_constructor("!reset", lambda loader, node: loader.construct_sequence(node))


def test_compose_has_one_process_to_a_container_and_one_public_port() -> None:
    services = yaml.load((ROOT / "compose.many.yaml").read_text(), ComposeLoader)["services"]
    web, proxy = services["web"], services["proxy"]
    assert (web["ports"], web["environment"]["WEB_PROCESSES"]) == ([], 1)
    replicas = web["deploy"]["replicas"]
    assert web["environment"]["DEPLOYMENT_PROCESSES"] == services["migrate"]["environment"]["DEPLOYMENT_PROCESSES"]
    assert web["environment"]["DEPLOYMENT_PROCESSES"] == replicas == "${WEB_REPLICAS:-4}"
    assert proxy["volumes"] == ["./deploy/nginx.conf:/etc/gateway/nginx.conf:ro"]
    assert proxy["read_only"] is True
    assert proxy["cap_drop"] == ["ALL"]
    assert len(proxy["ports"]) == 1
    tmpfs_mib = int(_only(proxy["tmpfs"]).removeprefix("/tmp:size=").removesuffix("m"))
    assert int(proxy["mem_limit"].removesuffix("m")) >= tmpfs_mib + 128
