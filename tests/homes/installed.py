"""The commands of docs/install.md for one host, executed in real containers: `python -m tests.homes.installed`.

The repository's commit is cloned, built and started with compose.yaml; Caddy ends TLS; the first owner signs in at
oidc-provider, a vendor of this host is added, and an agent calls its tool. Afterwards nothing of it is left. Needs
root, podman with podman-compose (tests/homes/programs.lock), Node.js, and debootstrap unless HOMES_PYTHON_IMAGE and
HOMES_POSTGRES_IMAGE, HOMES_REDIS_IMAGE, HOMES_CADDY_IMAGE name images. Five minutes. Exit code 3 where it cannot run.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e import agent
from tests.e2e.shared_gateway import keyless_catalog
from tests.fakes.patient_vendor import PatientVendor
from tests.homes.document import Block, blocks, replaced
from tests.homes.engine import Engine, say, why_not
from tests.homes.neighbours import PROVIDER_ADDRESS, PROVIDER_HOST, Authority, Provider, transport, vendor_of_this_host
from tests.homes.owner import Owner
from tests.homes.stand_ins import Images, build_options, images
from tests.vendors.processes import ROOT

NOT_HERE = 3
HEALTHY_S = 90.0
HOST = "gateway.localhost"  # for which Caddy makes certificates itself
ORIGIN = f"https://{HOST}"
DOCUMENT = ROOT / "docs" / "install.md"
VALUES = {"gateway.example.com": HOST, "REPOSITORY": str(ROOT)}
OWNER = "ann@example.com"  # as in the document
CADDY_ROOT = "/data/caddy/pki/authorities/local/root.crt"
# make_env leaves these empty.
ASKED_FOR = ("OIDC_OP_DISCOVERY_URL", "OIDC_RP_CLIENT_ID", "OIDC_RP_CLIENT_SECRET")


@dataclass
class Home:
    """An installation in `folder`; `steps` are its commands in the document's order."""

    engine: Engine
    images: Images
    provider: Provider
    vendor: PatientVendor
    folder: Path
    steps: list[Block] = field(default_factory=lambda: blocks(DOCUMENT.read_text(encoding="utf-8")))

    def do(self, name: str, number: int = 0, folder: Path | None = None) -> str:
        """Execute the block of this name and number in the document. Raises: CommandFailed."""
        block = [step for step in self.steps if step.name == name][number]
        say(f"--- {name} {number + 1}\n{block.text.rstrip()}")
        began_s = time.monotonic()
        said = self.engine.shell(replaced(block.text, VALUES), folder or self.folder)
        say(f"    {time.monotonic() - began_s:.0f} s")
        return said

    def fill_in(self) -> None:
        """Write the values and files that the document asks the reader for."""
        path = self.folder / ".env"
        asked = dict.fromkeys(ASKED_FOR, "") | {
            "OIDC_OP_DISCOVERY_URL": f"{self.provider.issuer}/.well-known/openid-configuration",
            "OIDC_RP_CLIENT_ID": self.provider.client_id,
            "OIDC_RP_CLIENT_SECRET": self.provider.client_secret,
        }
        text = path.read_text()
        for name, value in asked.items():
            assert f"\n{name}=\n" in text, name
            text = text.replace(f"\n{name}=\n", f"\n{name}={value}\n")
        added = {"ALLOW_PRIVATE_ENDPOINTS": "1", **self.images.variables()}
        path.write_text(text + "".join(f"{name}={value}\n" for name, value in added.items()))
        (self.folder / "ca.pem").write_bytes(self.provider.authority.root.read_bytes())
        self.override("web", "worker")

    def override(self, *names: str) -> None:
        """Write compose.override.yaml with these services of the document's examples."""
        services: dict[str, Any] = {}
        for step in self.steps:
            if step.name == "compose.override.yaml":
                services |= yaml.safe_load(step.text)["services"]
        chosen = {"services": {name: services[name] for name in names}}
        (self.folder / "compose.override.yaml").write_text(yaml.safe_dump(chosen))

    def authorities(self) -> str:
        """Those of the gateway's Caddy and of the provider, as PEM."""
        caddy = self.engine.shell(f"docker compose --profile tls exec caddy cat {CADDY_ROOT}", self.folder)
        return caddy + self.provider.authority.root.read_text()

    def transport(self) -> httpx.HTTPTransport:
        return transport({HOST: "127.0.0.1", PROVIDER_HOST: PROVIDER_ADDRESS}, self.authorities())


@contextlib.asynccontextmanager
async def prepared(folder: Path) -> AsyncIterator[Home]:
    """The images, the vendor and the provider of an installation that has not begun."""
    engine = Engine(folder, [])
    found = await asyncio.to_thread(images, engine)
    # The reader's engine fetches python:3.11-slim by itself.
    engine = Engine(folder, [*build_options(), "--build-arg", f"PYTHON_IMAGE={found.python}"])
    (folder / "tls").mkdir()
    authority = Authority(folder / "tls")
    authority.make(PROVIDER_HOST)
    provider = Provider(engine, authority, found.caddy)
    async with vendor_of_this_host() as vendor:
        with provider.running(ORIGIN):
            yield Home(engine, found, provider, vendor, folder / "gateway")


@contextlib.contextmanager
def started(home: Home) -> Iterator[None]:
    """The document's steps up to a service that answers; the deployment and its data are removed after the block."""
    home.do("one-host", 0, folder=home.engine.folder)
    home.do("one-host", 1)
    home.fill_in()
    try:
        home.do("one-host", 2)
        with home.provider.with_tls():
            root = home.engine.folder / "tls" / "caddy.pem"
            root.write_text(home.authorities())
            home.engine.environment["CURL_CA_BUNDLE"] = str(root)
            say(home.do("one-host", 3))
            yield
    except BaseException:
        with contextlib.suppress(AssertionError):
            say(home.engine.shell("docker compose --profile tls logs --tail 40 2>&1", home.folder))
        raise
    finally:
        home.engine.shell("docker compose --profile tls down --volumes", home.folder)


def first_call(home: Home) -> str:
    """The key of the first agent, whose call the vendor has answered."""
    say(home.do("one-host", 4))
    (home.folder / "vendors.toml").write_text(keyless_catalog("fake", home.vendor.url))
    home.override("web", "worker", "catalog")
    home.do("own-vendors")
    with Owner(ORIGIN, OWNER, home.transport()) as owner:
        owner.sign_in()
        key = owner.new_agent("fake")
    with httpx.Client(base_url=ORIGIN, transport=home.transport(), trust_env=False) as client:
        answer = agent.result(agent.call(client, key, "fake_list", site="one"))
    assert answer["structuredContent"] == {"site": "one"}, answer
    say("The owner has signed in, and the agent's call was answered.")
    expect_health(home)
    return key


def expect_health(home: Home) -> None:
    """Raises: AssertionError when a program has ended and been started again, or does not become healthy."""
    deadline = time.monotonic() + HEALTHY_S
    while ailing := home.engine.ailing("gateway"):
        assert time.monotonic() < deadline, ailing
        time.sleep(2.0)
    say("Every container is healthy, and none has been started again.")


@contextlib.asynccontextmanager
async def in_thread(context: AbstractContextManager[None]) -> AsyncIterator[None]:
    """The context, entered and left beside the event loop."""
    await asyncio.to_thread(context.__enter__)
    try:
        yield
    except BaseException as fault:
        await asyncio.to_thread(context.__exit__, type(fault), fault, fault.__traceback__)
        raise
    await asyncio.to_thread(context.__exit__, None, None, None)


async def used(folder: Path, then: Callable[[Home, str], Awaitable[None]] | None = None) -> list[str]:
    """Makes an installation, and its first call, does what comes `then` with the agent's key, and removes it.

    Returns its leftovers.
    """
    async with prepared(folder) as home:
        before = home.engine.things()
        async with in_thread(started(home)):
            key = await asyncio.to_thread(first_call, home)
            if then is not None:
                await then(home, key)
        return home.engine.things() - before


def judged(then: Callable[[Home, str], Awaitable[None]] | None = None) -> int:
    """The exit code of a program that makes an installation."""
    if reason := why_not():
        say(f"Skipped: {reason}.")
        return NOT_HERE
    with tempfile.TemporaryDirectory(prefix="homes-") as name:
        left = asyncio.run(used(Path(name), then))
    say("\n".join(["Left over:", *left, "BROKEN"]) if left else "No container, network, volume or pod is left. GOOD")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(judged())
