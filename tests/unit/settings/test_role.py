"""GATEWAY_ROLE: helpers start without the keys of those who serve, and can do nothing with credentials."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gateway.lib.crypto import Keyring, UnknownKey

STORES = {
    "BASE_URL": "https://gateway.example.com",
    "DATABASE_URL": "postgres://gateway@127.0.0.1:9/gateway",
    "REDIS_URL": "redis://127.0.0.1:9/0",
}
SHOW = "from django.conf import settings as s; print(len(s.SECRET_KEY), s.CREDENTIAL_KEYRING)"


def start(**variables: str) -> tuple[int, str]:
    environment = {**STORES, **variables, "PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "gateway.settings"}
    found = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, timeout=60)
    return found.returncode, found.stdout + found.stderr


def test_a_helper_starts_with_the_stores_alone() -> None:
    assert start(GATEWAY_ROLE="helper") == (0, "64 Keyring(current_id='', ids=[])\n")


def test_who_serves_needs_everything() -> None:
    for role in ({}, {"GATEWAY_ROLE": "service"}):
        status, said = start(**role)
        assert (status, said) == (78, "Cannot start: SECRET_KEY must be set to at least 32 random characters.\n")


@pytest.mark.parametrize("weak", [{"SECRET_KEY": "short"}, {"CREDENTIAL_KEYS": "k1:AAAA"}, {"GATEWAY_ROLE": "cook"}])
def test_what_a_helper_is_given_is_judged_all_the_same(weak: dict[str, str]) -> None:
    status, said = start(**{"GATEWAY_ROLE": "helper", **weak})
    assert status == 78
    assert next(iter(weak)) in said


def test_without_keys_nothing_is_wrapped_and_nothing_opened() -> None:
    keyring = Keyring.without_keys()
    with pytest.raises(UnknownKey):
        keyring.wrap(bytes(32), b"")
    with pytest.raises(UnknownKey):
        keyring.unwrap("", b"", b"")
