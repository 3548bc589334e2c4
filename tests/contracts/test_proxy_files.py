"""The proxies' files before several web processes, in a real nginx and a real Envoy where they are installed; compose.

Spec: docs/many-processes.md
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

import httpx
import pytest
import yaml

from gateway.settings.stopping import DELAY_WITH_BALANCER_S
from gateway.supervisor.services import KEEP_ALIVE_S
from tests.factories.compose_files import services_of
from tests.fakes import nginx
from tests.vendors.processes import PLAIN_HTTP, TETHER, free_port, stop

ROOT = Path(__file__).resolve().parents[2]
NGINX = nginx.CONFIGURATION
ENVOY = (ROOT / "deploy" / "envoy.yaml").read_text()
pytestmark = pytest.mark.one_back_end
START_DEADLINE_S = 20.0
NOT_ANSWERED = (502, 503)  # by nginx and by Envoy


class Process:
    """Stands for a web process: it answers its number and the headers that it got, refuses the head, or hangs up."""

    def __init__(self, number: int) -> None:
        process = self
        self.requests = self.checks = 0
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
                for name in ("X-Forwarded-For", "X-Forwarded-Proto", "Host", "Authorization", "X-Request-Id"):
                    self.send_header(f"Got-{name}", self.headers.get(name, ""))
                self.send_header("Content-Length", "1")
                self.end_headers()
                self.wfile.write(str(number).encode())

            def do_GET(self) -> None:
                if self.path != "/ready":
                    self.do_POST()
                    return
                process.checks += 1
                self.send_response(200)  # to Envoy, which asks every process all the time
                self.send_header("Content-Length", "0")
                self.end_headers()

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


Command = Callable[[Path, int, list[Process]], list[str]]  # of a folder, the port to listen at, and the processes


def nginx_before(folder: Path, port: int, processes: list[Process]) -> list[str]:
    return nginx.nginx_command(folder, port, [process.port for process in processes])


def envoy_command(folder: Path, port: int, processes: list[Process]) -> list[str]:
    endpoint = """              - endpoint:
                  address:
                    socket_address: {address: %s, port_value: %d}
"""
    changes = {
        "{address: 0.0.0.0, port_value: 8080}": f"{{address: 127.0.0.1, port_value: {port}}}",
        "          interval: 2s": "          interval: 0.1s",
        "no_traffic_interval: 2s": "no_traffic_interval: 0.1s",
        endpoint % ("web", 8000): "".join(endpoint % ("127.0.0.1", process.port) for process in processes),
    }
    path = folder / "envoy.yaml"
    path.write_text(nginx.changed(ENVOY, changes))
    _check(["envoy", "-c", str(path), "--mode", "validate"])
    return ["envoy", "-c", str(path), "--disable-hot-restart", "--concurrency", "1", "--log-level", "error"]


def _check(command: list[str]) -> None:
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def _if_installed(name: str, command: Command) -> Any:
    absent = pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")
    return pytest.param(command, marks=absent, id=name)


@pytest.fixture(params=[_if_installed("nginx", nginx_before), _if_installed("envoy", envoy_command)])
def client(request: pytest.FixtureRequest, processes: list[Process], tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of the proxy with the file of the repository."""
    port = free_port()
    started = subprocess.Popen(
        [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *request.param(tmp_path, port, processes)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        limits = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", **PLAIN_HTTP, timeout=20.0, limits=limits) as made:
            _wait_until_it_answers(made, started)
            if request.param is envoy_command:
                _wait_until_checked(made, processes)
            yield made
    finally:
        stop(started)


def _wait_until_it_answers(client: httpx.Client, started: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while True:
        with contextlib.suppress(httpx.TransportError):
            if client.get("/").status_code == 200:
                return
        assert started.poll() is None, "the proxy has ended"
        assert time.monotonic() < deadline, "the proxy does not answer"
        time.sleep(0.01)


def _wait_until_checked(client: httpx.Client, processes: list[Process]) -> None:
    """Envoy knows that all of them are ready. Before it knows half of them, it asks any."""
    before, deadline = [process.checks for process in processes], time.monotonic() + START_DEADLINE_S
    while any(process.checks < count + 2 for process, count in zip(processes, before, strict=True)):
        assert time.monotonic() < deadline, "Envoy does not check the processes"
        time.sleep(0.01)
    while len({post(client, f"first-{number}").text for number in range(60)}) < len(processes):
        assert time.monotonic() < deadline, "Envoy does not use all processes"


def post(client: httpx.Client, bearer: str | None, **headers: str) -> httpx.Response:
    given = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    return client.post("/v1/mcp", content=b"{}", headers={**given, **headers})


def homes(client: httpx.Client, bearers: list[str]) -> Mapping[str, str]:
    """The process that answers each bearer; it is the same for both of its requests."""
    found = {bearer: post(client, bearer).text for bearer in bearers}
    assert {bearer: post(client, bearer).text for bearer in bearers} == found
    return found


def test_a_caller_stays_with_one_process_and_callers_are_spread(client: httpx.Client) -> None:
    assert set(homes(client, [f"key-{number}" for number in range(60)]).values()) == {"0", "1", "2", "3"}


def test_requests_without_a_bearer_are_spread(client: httpx.Client) -> None:
    assert len({post(client, None).text for _ in range(60)}) == 4


def test_the_callers_of_a_process_that_has_ended_move(
    request: pytest.FixtureRequest, client: httpx.Client, processes: list[Process]
) -> None:
    """And with nginx no others. Envoy builds its hash ring anew, which moves a tenth of them."""
    bearers = [f"key-{number}" for number in range(60)]
    before = homes(client, bearers)
    processes[2].end()
    for _ in range(3):  # before and after the proxy knows it
        after = {bearer: post(client, bearer).text for bearer in bearers}
        assert set(after.values()) <= {"0", "1", "3"}
        moved = [bearer for bearer in bearers if before[bearer] not in ("2", after[bearer])]
        assert len(moved) <= (len(bearers) // 3 if "envoy" in request.node.callspec.id else 0)


def test_a_call_that_was_sent_is_never_sent_again(client: httpx.Client, processes: list[Process]) -> None:
    """The process took it and ended the connection: the vendor may have acted."""
    for process in processes:
        process.requests, process.drops = 0, True
    assert post(client, "key").status_code in NOT_ANSWERED
    assert sum(process.requests for process in processes) == 1


@pytest.mark.parametrize(("method", "path"), [("GET", "/oidc/callback/?code=once"), ("DELETE", "/api/orgs/1/teams/2")])
def test_a_page_or_a_deletion_that_was_sent_is_never_sent_again(
    client: httpx.Client, processes: list[Process], method: str, path: str
) -> None:
    for process in processes:
        process.requests, process.drops = 0, True
    assert client.request(method, path).status_code in NOT_ANSWERED
    assert sum(process.requests for process in processes) == 1


def test_the_gateway_refuses_a_head_before_its_body_has_come(client: httpx.Client, processes: list[Process]) -> None:
    for process in processes:
        process.refuses = True
    address = (client.base_url.host, client.base_url.port)
    with socket.create_connection(address, timeout=START_DEADLINE_S) as connection:
        connection.sendall(b"POST /v1/mcp HTTP/1.1\r\nHost: gateway.example\r\nContent-Length: 4194304\r\n\r\n{")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")


def test_the_gateway_learns_of_the_client_and_not_of_the_proxy(client: httpx.Client) -> None:
    direct = post(client, "key").headers
    own = direct["Got-X-Forwarded-For"]  # Envoy puts the machine's address in the place of the loopback
    assert (ipaddress.ip_address(own).is_private, direct["Got-X-Forwarded-Proto"]) == (True, "http")
    assert direct["Got-Authorization"] == "Bearer key"
    assert direct["Got-Host"] == client.base_url.netloc.decode()
    behind_tls = {
        "X-Forwarded-For": "203.0.113.7",
        "X-Forwarded-Proto": "https",
        "Host": "gateway.example",
        "X-Request-Id": "chosen-by-the-client",
    }
    through = post(client, "key", **behind_tls).headers
    assert through["Got-X-Forwarded-For"].replace(" ", "") == f"203.0.113.7,{own}"
    assert (through["Got-X-Forwarded-Proto"], through["Got-Host"]) == ("https", "gateway.example")
    assert through["Got-X-Request-Id"] == "chosen-by-the-client"


def test_both_proxies_let_idle_connections_go_before_the_gateway_does() -> None:
    assert re.findall(r"keepalive_timeout (\d+)s;", NGINX) == ["4", "4", "75"], "of calls, of pages and of clients"
    assert DELAY_WITH_BALANCER_S > 4, "a stopping process closes connections that were idle for as long"
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


def test_envoy_ends_no_answer_that_goes_on() -> None:
    """nginx counts the seconds between two reads, and Envoy those of the whole answer unless it is told otherwise."""
    route = _only(_only(connection_manager()["route_config"]["virtual_hosts"])["routes"])["route"]
    assert (route["timeout"], connection_manager()["stream_idle_timeout"]) == ("0s", "330s")
    assert "proxy_read_timeout 330s;" in NGINX


def test_envoy_takes_as_many_calls_as_nginx() -> None:
    [bounds] = envoy_cluster()["circuit_breakers"]["thresholds"]
    assert "worker_connections 8192;" in NGINX
    assert {name: bounds[name] for name in ("max_connections", "max_pending_requests", "max_requests")} == {
        "max_connections": 8192,
        "max_pending_requests": 8192,
        "max_requests": 8192,
    }
    assert bounds["max_retries"] >= 1000, "when a process ends, all of its callers move at once"


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


def test_compose_has_one_process_to_a_container_and_one_public_port() -> None:
    services = services_of(ROOT / "compose.many.yaml")
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
