"""Pure: the variables of `make run`, parsed into `Options`. Contract: 1"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
WILDCARD_HOSTS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound


class StartRefused(Exception):
    """The start cannot continue. The message is one sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class Options:
    """Parsed options. Paths are absolute; `idp_port` and `vendor_port` matter only with `demo`."""

    port: int
    idp_port: int
    vendor_port: int
    host: str
    var: Path
    catalog: Path | None
    demo: bool
    base_url: str
    web_processes: int
    has_redis: bool
    has_own_provider: bool
    # From SIGTERM until a web process has ended its calls.
    stop_s: int

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK_HOSTS

    @property
    def runs_demo_provider(self) -> bool:
        return self.demo and not self.has_own_provider

    @property
    def connect_host(self) -> str:
        """Host under which this machine reaches its own servers."""
        return "127.0.0.1" if self.host in WILDCARD_HOSTS else self.host

    @property
    def demo_host(self) -> str:
        """Host of the demo servers' addresses: a remote browser must reach the same host as the service."""
        return "127.0.0.1" if self.is_loopback else urlsplit(self.base_url).hostname or self.connect_host

    @property
    def idp_url(self) -> str:
        """The demo identity provider's address, which is its issuer."""
        return f"http://{bracketed(self.demo_host)}:{self.idp_port}"

    @property
    def vendor_url(self) -> str:
        """The demo vendor server's address, as the service calls it."""
        return f"http://{bracketed(self.connect_host)}:{self.vendor_port}"

    def required_ports(self) -> dict[str, int]:
        ports = {"PORT": self.port}
        if self.runs_demo_provider:
            ports["IDP_PORT"] = self.idp_port
        if self.demo:
            ports["VENDOR_PORT"] = self.vendor_port
        return ports


def read_options(environ: Mapping[str, str], folder: Path) -> Options:
    """Parse `environ`; relative paths start at `folder`. Raises: StartRefused naming the variable. Contract: 1"""
    # An empty variable counts as absent.
    port = _port(environ, "PORT", 8000)
    catalog = environ.get("CATALOG", "")
    options = Options(
        port=port,
        idp_port=_port(environ, "IDP_PORT", 9400),
        vendor_port=_port(environ, "VENDOR_PORT", 9100),
        host=environ.get("HOST") or "127.0.0.1",
        var=_path(environ.get("VAR") or "var", folder),
        catalog=_path(catalog, folder) if catalog else None,
        demo=_is_on(environ, "DEMO"),
        base_url=_base_url(environ.get("BASE_URL") or f"http://127.0.0.1:{port}"),
        web_processes=_count(environ, "WEB_PROCESSES"),
        has_redis=is_given(environ, "REDIS_URL"),
        has_own_provider=is_given(environ, "OIDC_OP_DISCOVERY_URL"),
        stop_s=max(_seconds(environ, "DRAIN_SECONDS", 35), _seconds(environ, "DRAIN_DELAY_SECONDS", 0) + 1),
    )
    _refuse_equal_ports(options.required_ports())
    if options.catalog and not options.catalog.is_file():
        raise StartRefused(f"CATALOG={catalog} is not a file. Name a catalog file or leave CATALOG out.")
    return options


def is_given(environ: Mapping[str, str], name: str) -> bool:
    """Whether a setting has a value or a file with one."""
    return bool(environ.get(name) or environ.get(f"{name}_FILE"))


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _path(text: str, folder: Path) -> Path:
    return (folder / Path(text).expanduser()).resolve()


def _port(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise StartRefused(f"{name}={text} is not a port. Use a number from 1 to 65535, for example {name}={default}.")
    return int(text)


def _count(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name) or "1"
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 256:
        raise StartRefused(f"{name}={text} is not a number from 1 to 256.")
    return int(text)


def _seconds(environ: Mapping[str, str], name: str, default: int) -> int:
    # The settings check the range; this is only how long the supervisor waits.
    text = environ.get(name) or str(default)
    if not text.isascii() or not text.isdigit():
        raise StartRefused(f"{name}={text} is not a number of seconds.")
    return int(text)


def _is_on(environ: Mapping[str, str], name: str) -> bool:
    text = (environ.get(name) or "1").lower()
    if text not in {"1", "true", "yes", "on", "0", "false", "no", "off"}:
        raise StartRefused(f"{name}={text} is neither on nor off. Use {name}=0 to leave the demo out.")
    return text in {"1", "true", "yes", "on"}


def _base_url(text: str) -> str:
    url = text.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or parts.query or parts.username:
        raise StartRefused(
            f"BASE_URL={text} is not the service's own address. Use a form like https://gateway.example.com."
        )
    return url


def _refuse_equal_ports(ports: Mapping[str, int]) -> None:
    names: dict[int, str] = {}
    for name, port in ports.items():
        if port in names:
            raise StartRefused(f"{names[port]} and {name} are both {port}. Give each its own port.")
        names[port] = name
