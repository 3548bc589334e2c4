"""Master keys wrapped by a real Vault (OpenBao): what it refuses, a start, and its loss while the gateway serves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.keys.vault import VaultTransit
from gateway.keys.wrapping import WrappingError
from tests.e2e import agent
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import deployment
from tests.e2e.shared_gateway import acme_catalog
from tests.vendors.openbao import KEY, OpenBao, openbao, program
from tests.vendors.processes import free_port, stop
from tests.vendors.servers import DemoVendor

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")
pytestmark = pytest.mark.skipif(program() is None, reason="there is no build of OpenBao for this computer")
MASTER_KEY = os.urandom(32)


@pytest.fixture
def bao() -> Iterator[OpenBao]:
    with openbao() as running:
        yield running


def service_of(bao: OpenBao, *actions: str) -> VaultTransit:
    return VaultTransit(address=bao.address, token=bao.token(*actions), key_name=KEY, timeout_s=20.0)


def refusal(service: VaultTransit, wrapped: str) -> str:
    with pytest.raises(WrappingError) as caught:
        service.unwrap("2027", wrapped)
    return str(caught.value)


def test_a_real_vault_wraps_opens_and_refuses(bao: OpenBao) -> None:
    operator, starting = service_of(bao, "encrypt", "decrypt"), service_of(bao, "decrypt")
    wrapped = operator.wrap("2027", MASTER_KEY)
    assert wrapped.startswith("vault:v1:")
    assert starting.unwrap("2027", wrapped) == MASTER_KEY
    with pytest.raises(WrappingError, match="Vault refuses the token"):
        starting.wrap("2027", MASTER_KEY)
    assert "refuses the token (status 403" in refusal(replace(starting, token="hvs.of-nobody"), wrapped)

    root = replace(starting, token=bao.root_token)
    assert "no such transit engine (status 404" in refusal(replace(root, mount="elsewhere"), wrapped)
    assert "no such transit key, or not the version" in refusal(replace(root, key_name="none"), wrapped)
    bao.ask("POST", "transit/keys/another")
    assert "no such transit key, or not the version" in refusal(replace(root, key_name="another"), wrapped)
    assert "(status 400 for key 2027)" in refusal(starting, "vault:v9:AAAA")

    bao.ask("POST", f"transit/keys/{KEY}/rotate")
    assert operator.wrap("2027", MASTER_KEY).startswith("vault:v2:")
    assert starting.unwrap("2027", wrapped) == MASTER_KEY
    bao.ask("POST", f"transit/keys/{KEY}/config", {"min_decryption_version": 2})
    assert "not the version of it" in refusal(starting, wrapped)

    bao.ask("POST", "sys/seal")
    assert "is sealed or under maintenance (status 503" in refusal(starting, wrapped)


def test_a_gateway_starts_with_it_and_serves_on_without_it(
    bao: OpenBao, template: Template, demo_vendor: DemoVendor, tmp_path: Path
) -> None:
    wrapped = service_of(bao, "encrypt", "decrypt").wrap("2027", MASTER_KEY)
    variables = {
        "CREDENTIAL_KEYS": f"2027:{wrapped}",
        "VAULT_ADDR": bao.address,
        "VAULT_TOKEN": bao.token("decrypt"),
        "VAULT_TRANSIT_KEY": KEY,
    }
    with deployment(template, tmp_path / "var", variables=variables) as made, made.web() as web:
        with made.operator() as operator:
            operator.run("load_catalog", text=acme_catalog(demo_vendor))
            clients = []
            for name in ("One", "Two"):
                org_id = operator.run("create_organization", name=name)
                fields = {"apiKey": DemoVendor.new_api_key()}
                operator.run("connect_vendor", org_id=org_id, vendor="acme", fields=fields)
                clients.append(operator.run("create_service_client", org_id=org_id, name="bot")["agent_key"])
        with web.client() as client:
            agent.result(agent.call(client, clients[0], "acme_whoami"))
            stop(bao.server.process)
            # The first organization is known to the process, the second has its data key opened now.
            for key in clients:
                agent.result(agent.call(client, key, "acme_whoami"))
            with made.web(port=free_port(), waits=False) as second:
                assert second.process.wait(60) != 0
                said = second.log()
        assert "Cannot start: CREDENTIAL_KEYS cannot be unwrapped: Vault does not answer.\n" in said
        hidden = (variables["VAULT_TOKEN"], MASTER_KEY.hex())
        assert not [path for path in made.log_paths for secret in hidden if secret in path.read_text()]
