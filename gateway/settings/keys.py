"""Keys that seal: CREDENTIAL_KEYS, and the key services that unwrap them at the start. Contract: 5"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.keys.aws_kms import AwsKms
from gateway.keys.wrapping import AWS_KMS, VAULT, KeyWrapping, WrappingError, open_keyring, services_of_entries
from gateway.lib.crypto import Keyring
from gateway.settings import env

_keys = env.text("CREDENTIAL_KEYS")
# A helper has no keys, and what it is given for all processes need not be whole.
_OPENS = bool(_keys) or not env.HELPER
# Seconds for one request to a key service.
_TIMEOUT_S = env.integer("KEY_SERVICE_TIMEOUT", 5, low=1, high=60)
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")
_VAULT_VARIABLES = ("VAULT_ADDR", "VAULT_TOKEN")
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def _vault() -> KeyWrapping | None:
    key_name, mount = env.text("VAULT_TRANSIT_KEY"), env.text("VAULT_TRANSIT_MOUNT")
    if mount and not key_name:
        env.refuse("VAULT_TRANSIT_KEY", "must be set, because VAULT_TRANSIT_MOUNT is.")
    if not key_name or not _OPENS:
        return None
    address, token = env.text("VAULT_ADDR").rstrip("/"), env.text("VAULT_TOKEN")
    namespace, ca_file = env.text("VAULT_NAMESPACE"), env.text("VAULT_CACERT")
    mount = mount.strip("/") or "transit"
    for name, value in zip(_VAULT_VARIABLES, (address, token), strict=True):
        if not value:
            env.refuse(name, "must be set, because VAULT_TRANSIT_KEY is.")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or any(parts[2:]):
        env.refuse("VAULT_ADDR", "must be an address such as https://vault.example.com:8200, without a path.")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        env.refuse("VAULT_ADDR", "must begin with https://, unless it is this host's own.")
    if not (token.isascii() and token.isprintable()) or " " in token:
        env.refuse("VAULT_TOKEN", "must be one token, without spaces.")
    for name, value in (("VAULT_TRANSIT_KEY", key_name), ("VAULT_TRANSIT_MOUNT", mount)):
        if not _NAME.fullmatch(value):
            env.refuse(name, "must be a name of letters, digits, dashes, underscores and dots.")
    if namespace and not _NAME.fullmatch(namespace.strip("/")):
        env.refuse("VAULT_NAMESPACE", "must be the path of a namespace.")
    if ca_file and not _holds_certificates(ca_file):
        env.refuse("VAULT_CACERT", "names no readable file of certificates.")
    from gateway.keys.vault import VaultTransit  # the HTTP client takes a tenth of a second to import

    return VaultTransit(
        address=address,
        token=token,
        key_name=key_name,
        mount=mount,
        namespace=namespace,
        ca_file=ca_file,
        timeout_s=_TIMEOUT_S,
    )


def _holds_certificates(path: str) -> bool:
    try:
        ssl.create_default_context(cafile=path)
    except OSError:  # ssl.SSLError is one
        return False
    return True


def _aws_kms() -> KeyWrapping | None:
    key = env.text("AWS_KMS_KEY_ID")
    if key and not re.fullmatch(r"[A-Za-z0-9:/_-]{1,2048}", key):
        env.refuse("AWS_KMS_KEY_ID", "must be the id, ARN or alias of a KMS key.")
    return AwsKms(key=key, timeout_s=_TIMEOUT_S) if key and _OPENS else None


# By name, those that are configured.
KEY_SERVICES: Mapping[str, KeyWrapping] = {
    name: service for name, service in ((VAULT, _vault()), (AWS_KMS, _aws_kms())) if service is not None
}
# By key id, the service that wraps it; empty for a key that CREDENTIAL_KEYS holds as it is.
KEYS_WRAPPED_BY = services_of_entries(_keys)
try:
    CREDENTIAL_KEYRING = open_keyring(_keys, KEY_SERVICES) if _OPENS else Keyring.without_keys()
except ValueError as _fault:
    env.refuse("CREDENTIAL_KEYS", f"is missing or weak: {_fault}.")
except WrappingError as _fault:
    env.refuse("CREDENTIAL_KEYS", f"cannot be unwrapped: {_fault}.")
# Days after which the doctor asks for a rotation.
KEY_AGE_WARNING_DAYS = env.integer("KEY_AGE_WARNING_DAYS", 365, low=1, high=3_650)
