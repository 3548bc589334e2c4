from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import string

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def random_base62(length: int) -> str:
    """`length` characters of [0-9A-Za-z]; 43 of them hold 256 bits."""
    return "".join(secrets.choice(BASE62) for _ in range(length))


def random_url_safe() -> str:
    """43 URL-safe characters, 256 random bits. Spec: D72"""
    return secrets.token_urlsafe(32)


def random_webhook_secret() -> str:
    """32 random bytes in the form of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def sha256(text: str) -> bytes:
    # One SHA-256 is enough: a secret with 256 random bits cannot be guessed, and a slow hash only costs time.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def equal(left: bytes, right: bytes) -> bool:
    return hmac.compare_digest(left, right)
