"""Vault's transit engine as a key service: it wraps and opens, and each refusal is one sentence without a secret."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from gateway.keys.vault import VaultTransit
from gateway.keys.wrapping import WrappingError, open_keyring
from tests.fakes.authority import Authority
from tests.fakes.vault_transit import TOKEN, FakeVault, vault_transit

pytestmark = pytest.mark.one_back_end
KEY = os.urandom(32)


@pytest.fixture
def vault() -> Iterator[FakeVault]:
    with vault_transit() as running:
        yield running


@pytest.fixture
def service(vault: FakeVault) -> VaultTransit:
    return VaultTransit(address=vault.address, token=TOKEN, key_name="gateway", timeout_s=5.0)


def refusal(service: VaultTransit, wrapped: str) -> str:
    with pytest.raises(WrappingError) as caught:
        service.unwrap("2027", wrapped)
    said = str(caught.value)
    assert not {part for part in (TOKEN, wrapped, KEY.hex()) if part in said}
    return said


def test_a_key_is_wrapped_and_opened(vault: FakeVault, service: VaultTransit) -> None:
    wrapped = service.wrap("2027", KEY)
    assert wrapped.startswith("vault:v1:")
    assert service.unwrap("2027", wrapped) == KEY
    assert vault.seen == [("encrypt", "gateway", ""), ("decrypt", "gateway", "")]
    assert dict(open_keyring(f"2027:{wrapped}", {"vault": service}).keys) == {"2027": KEY}


def test_the_transit_key_may_be_rotated_until_its_old_versions_are_retired(
    vault: FakeVault, service: VaultTransit
) -> None:
    wrapped = service.wrap("2027", KEY)
    vault.rotate()
    assert service.wrap("2027", KEY).startswith("vault:v2:")
    assert service.unwrap("2027", wrapped) == KEY
    vault.min_decryption_version = 2
    assert "not the version of it" in refusal(service, wrapped)


def test_namespace_and_mount(vault: FakeVault, service: VaultTransit) -> None:
    vault.namespace, vault.mount = "teams/tools", "keys/transit"
    inside = replace(service, namespace="teams/tools", mount="keys/transit")
    assert inside.unwrap("2027", inside.wrap("2027", KEY)) == KEY
    assert vault.seen[0] == ("encrypt", "gateway", "teams/tools")
    wrapped = inside.wrap("2027", KEY)
    assert "refuses the token (status 403" in refusal(replace(inside, namespace=""), wrapped)
    assert "no such transit engine" in refusal(replace(inside, mount="transit"), wrapped)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"token": "another"}, "refuses the token (status 403 for key 2027)"),
        ({"may": ("encrypt",)}, "refuses the token"),
        ({"is_sealed": True}, "is sealed or under maintenance (status 503"),
        ({"keys": {}}, "no such transit key"),
        ({"keys": {"gateway": [bytes(32)]}}, "no such transit key, or not the version"),
        ({"garbage": b""}, "is not Vault"),
        ({"garbage": b"<html>"}, "is not Vault"),
        ({"garbage": b"[" * 50_000}, "is not Vault"),
        ({"garbage": b'{"data": []}'}, "is not Vault"),
        ({"garbage": b'{"data": {}}'}, "has no plaintext"),
        ({"garbage": b'{"data": {"plaintext": 1}}'}, "has no plaintext"),
        ({"garbage": b'{"data": {"plaintext": "!"}}'}, "has no plaintext"),
        ({"garbage": b"x" * 100_000}, "is not Vault"),
    ],
)
def test_refusals(vault: FakeVault, service: VaultTransit, change: dict[str, Any], words: str) -> None:
    wrapped = service.wrap("2027", KEY)
    for name, value in change.items():
        setattr(vault, name, value)
    assert words in refusal(service, wrapped)


def test_a_vault_that_does_not_answer_in_time(vault: FakeVault, service: VaultTransit) -> None:
    wrapped = service.wrap("2027", KEY)
    vault.is_slow = True
    assert refusal(replace(service, timeout_s=0.2), wrapped) == "Vault gave no answer within 0.2 seconds"


def test_a_vault_that_is_away(service: VaultTransit) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = replace(service, address=f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert refusal(nobody, "vault:v1:eA==") == "Vault does not answer"


def test_an_address_of_cloud_metadata_is_never_asked(service: VaultTransit) -> None:
    assert "not allowed" in refusal(replace(service, address="http://169.254.169.254"), "vault:v1:eA==")


@pytest.mark.parametrize(
    "answer", [b'{"data": {"ciphertext": "a,b"}}', b'{"data": {"ciphertext": 1}}', b'{"data": {}}']
)
def test_what_is_no_ciphertext_becomes_no_entry(vault: FakeVault, service: VaultTransit, answer: bytes) -> None:
    vault.garbage = answer
    with pytest.raises(WrappingError, match="has no ciphertext"):
        service.wrap("2027", KEY)


def test_a_certificate_of_ones_own_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    (tmp_path / "ca.pem").write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    with vault_transit(tls) as vault:
        service = VaultTransit(address=vault.address, token=TOKEN, key_name="gateway", ca_file=str(tmp_path / "ca.pem"))
        assert service.unwrap("2027", service.wrap("2027", KEY)) == KEY
        assert "certificate that is refused" in refusal(replace(service, ca_file=""), "vault:v1:eA==")
        assert all(seen[0] != "" for seen in vault.seen)


def test_the_token_is_not_shown(service: VaultTransit) -> None:
    assert TOKEN not in repr(service)
