"""HashiCorp Vault's transit engine (and OpenBao's) as a key service, by its HTTP API."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from gateway.keys.wrapping import WrappingError
from gateway.lib import guarded_client
from gateway.lib.guarded_client import BadResponse, CertificateRefused, OutboundError, OutboundTimeout, ResponseTooLarge
from gateway.lib.outbound import AddressRefused

MAX_BYTES = 64 * 1024
# The meaning of each refusal. Vault's own words are not repeated: they may quote the request.
MEANINGS: dict[int, str] = {
    HTTPStatus.BAD_REQUEST: "has no such transit key, or not the version of it that the entry names",
    HTTPStatus.FORBIDDEN: "refuses the token",
    HTTPStatus.NOT_FOUND: "has no such transit engine",
    HTTPStatus.TOO_MANY_REQUESTS: "has too many requests",
    HTTPStatus.SERVICE_UNAVAILABLE: "is sealed or under maintenance",
}


@dataclass(frozen=True, slots=True)
class VaultTransit:
    """`ca_file`: the authorities that may sign Vault's certificate; empty for those of the system."""

    address: str
    token: str = field(repr=False)
    key_name: str
    mount: str = "transit"
    namespace: str = ""
    ca_file: str = ""
    timeout_s: float = 5.0

    def wrap(self, key_id: str, key: bytes) -> str:
        answer = self._ask("encrypt", key_id, {"plaintext": base64.b64encode(key).decode()})
        wrapped = answer.get("ciphertext")
        if not isinstance(wrapped, str) or not wrapped.startswith("vault:v") or "," in wrapped:
            raise WrappingError(f"Vault's answer for key {key_id} has no ciphertext")
        return wrapped

    def unwrap(self, key_id: str, wrapped: str) -> bytes:
        answer = self._ask("decrypt", key_id, {"ciphertext": wrapped})
        try:
            return base64.b64decode(answer["plaintext"], validate=True)
        except (KeyError, TypeError, ValueError):
            raise WrappingError(f"Vault's answer for key {key_id} has no plaintext") from None

    def _ask(self, action: str, key_id: str, question: dict[str, str]) -> dict[str, Any]:
        headers = {"X-Vault-Token": self.token, "X-Vault-Request": "true", "Content-Type": "application/json"}
        if self.namespace:
            headers["X-Vault-Namespace"] = self.namespace
        try:
            answer = guarded_client.send(
                "POST",
                f"{self.address}/v1/{self.mount}/{action}/{self.key_name}",
                allow_private=True,
                timeout_s=self.timeout_s,
                max_bytes=MAX_BYTES,
                headers=headers,
                body=json.dumps(question).encode(),
                ca_file=self.ca_file,
            )
        except AddressRefused:
            raise WrappingError("the address of Vault is not allowed") from None
        except CertificateRefused as fault:
            raise WrappingError(f"Vault has a certificate that is refused: {fault}") from None
        except OutboundTimeout:
            raise WrappingError(f"Vault gave no answer within {self.timeout_s:g} seconds") from None
        except (BadResponse, ResponseTooLarge):
            raise WrappingError(f"what answers for key {key_id} is not Vault") from None
        except OutboundError:
            raise WrappingError("Vault does not answer") from None
        if answer.status != HTTPStatus.OK:
            meaning = MEANINGS.get(answer.status, "cannot do it")
            raise WrappingError(f"Vault {meaning} (status {answer.status} for key {key_id})")
        return _data_of(answer.body, key_id)


def _data_of(body: bytes, key_id: str) -> dict[str, Any]:
    try:
        data = json.loads(body)["data"]
    except (ValueError, KeyError, TypeError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise WrappingError(f"what answers for key {key_id} is not Vault")
    return data
