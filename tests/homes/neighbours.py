"""The surroundings of an installation: a vendor, an identity provider with TLS, and names that lead to them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpcore
import httpx
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fakes.patient_vendor import PatientVendor
from tests.homes.engine import Engine
from tests.vendors.processes import ROOT, stop

PROVIDER = ROOT / "tests" / "homes" / "provider"
PROVIDER_HOST = "login.home.arpa"
# In the network of compose.yaml: this host, and an address that compose gives to nobody.
HOST_ADDRESS, PROVIDER_ADDRESS = "172.31.250.1", "172.31.250.9"
NETWORK = "gateway_default"
# <linux/in.h>: an address may be listened at before its network is there.
_IP_FREEBIND = 15
INSTALL_S = 300


def listening_socket() -> socket.socket:
    """At a free port of the address that containers know this host by."""
    made = socket.socket()
    made.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
    made.bind((HOST_ADDRESS, 0))
    made.listen(128)
    return made


@dataclass(frozen=True)
class Authority:
    """A certificate authority of the test's own, with a certificate for one name. All are files of `folder`."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "ca.pem"

    def make(self, host: str) -> None:
        root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the test")])
        root = (
            _builder(root_name, root_name, root_key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(root_key, hashes.SHA256())
        )
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        leaf = (
            _builder(name, root_name, key)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .sign(root_key, hashes.SHA256())
        )
        self.root.write_bytes(root.public_bytes(serialization.Encoding.PEM))
        (self.folder / "leaf.pem").write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
        (self.folder / "leaf.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
    )


@dataclass
class Provider:
    """oidc-provider on this host, behind a Caddy with TLS in the network of compose.yaml."""

    engine: Engine
    authority: Authority
    caddy_image: str
    client_id: str = "gateway"
    client_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _port: int = 0

    @property
    def issuer(self) -> str:
        return f"https://{PROVIDER_HOST}"

    @contextlib.contextmanager
    def running(self, origin: str) -> Iterator[None]:
        """Until the block ends, for the gateway at `origin`."""
        if not (PROVIDER / "node_modules").is_dir():
            npm = ["npm", "--prefix", str(PROVIDER), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(npm, check=True, timeout=INSTALL_S, stdout=subprocess.DEVNULL)
        node = shutil.which("node")
        assert node is not None
        log = self.authority.folder / "provider.log"
        with listening_socket() as listening, log.open("wb") as output:
            self._port = listening.getsockname()[1]
            started = subprocess.Popen(
                ["sh", "-c", f"exec {node} provider.mjs 3<&{listening.fileno()}"],
                cwd=PROVIDER,
                env={
                    "PATH": os.environ["PATH"],
                    "ISSUER": self.issuer,
                    "CLIENT_ID": self.client_id,
                    "CLIENT_SECRET": self.client_secret,
                    "ORIGIN": origin,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(listening.fileno(),),
                start_new_session=True,
            )
            try:
                yield
            finally:
                stop(started)

    @contextlib.contextmanager
    def with_tls(self) -> Iterator[None]:
        """The network of compose.yaml must be there."""
        folder = self.authority.folder
        (folder / "Caddyfile").write_text(
            "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
            f"{self.issuer} {{\n\ttls /etc/caddy/leaf.pem /etc/caddy/leaf.key\n"
            f"\treverse_proxy {HOST_ADDRESS}:{self._port}\n}}\n"
        )
        name = "gateway-homes-provider"
        network = ["--network", NETWORK, "--ip", PROVIDER_ADDRESS, "--network-alias", PROVIDER_HOST]
        volume = ["--volume", f"{folder}:/etc/caddy:ro"]
        self.engine.run("podman", "run", "--detach", "--rm", "--name", name, *network, *volume, self.caddy_image)
        try:
            yield
        finally:
            self.engine.run("podman", "stop", "--time", "2", name)


@contextlib.asynccontextmanager
async def vendor_of_this_host() -> AsyncIterator[PatientVendor]:
    """A vendor without a key that containers reach."""
    vendor = PatientVendor(api_key=None)
    app = web.Application()
    app.router.add_route("*", "/mcp", vendor.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    with listening_socket() as listening:
        await web.SockSite(runner, listening).start()
        vendor.url = f"http://{HOST_ADDRESS}:{listening.getsockname()[1]}/mcp"
        try:
            yield vendor
        finally:
            await runner.cleanup()


class _Names(httpcore.NetworkBackend):
    """Names lead where DNS would lead."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses
        self._tcp = httpcore.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None, **_: object
    ) -> httpcore.NetworkStream:
        return self._tcp.connect_tcp(self._addresses[host], port, timeout, local_address)


def transport(addresses: Mapping[str, str], authorities: str) -> httpx.HTTPTransport:
    """To names without DNS, whose certificates these authorities (PEM) have signed."""
    context = ssl.create_default_context(cadata=authorities)
    made = httpx.HTTPTransport(verify=context, trust_env=False)
    made._pool = httpcore.ConnectionPool(ssl_context=context, network_backend=_Names(addresses))
    return made
