"""The hasher of client secrets: one SHA-256, because they carry 256 random bits and every token request checks one."""

from __future__ import annotations

import base64
from typing import Any

from django.contrib.auth.hashers import BasePasswordHasher
from django.utils.crypto import constant_time_compare

from gateway.lib import secrets


class ClientSecretHasher(BasePasswordHasher):
    """Stores `client_sha256$$<base64>`. For random secrets only, never for a person's password. Spec: D72"""

    algorithm = "client_sha256"

    def salt(self) -> str:
        # Random secrets never repeat, so they need no salt.
        return ""

    def encode(self, password: str, salt: str) -> str:
        return f"{self.algorithm}${salt}${base64.b64encode(secrets.sha256(password)).decode()}"

    def decode(self, encoded: str) -> dict[str, str]:
        algorithm, salt, digest = encoded.split("$", 2)
        return {"algorithm": algorithm, "salt": salt, "hash": digest}

    def verify(self, password: str, encoded: str) -> bool:
        return constant_time_compare(encoded, self.encode(password, self.decode(encoded)["salt"]))

    def safe_summary(self, encoded: str) -> dict[Any, Any]:
        return {"algorithm": self.algorithm}

    def must_update(self, encoded: str) -> bool:
        # There are no parameters that could age.
        return False

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Equalises nothing: there is one iteration."""
