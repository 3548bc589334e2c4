"""AWS KMS as a key service, through boto3 (requirements-aws.lock), which finds region and credentials itself."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from gateway.keys.wrapping import AWS_KMS, WrappingError


@dataclass(frozen=True, slots=True)
class AwsKms:
    """`key`: the id, ARN or alias of a symmetric KMS key."""

    key: str
    timeout_s: float = 5.0

    def wrap(self, key_id: str, key: bytes) -> str:
        answer = self._ask("encrypt", key_id, Plaintext=key)
        return f"{AWS_KMS}:{base64.b64encode(answer['CiphertextBlob']).decode()}"

    def unwrap(self, key_id: str, wrapped: str) -> bytes:
        try:
            blob = base64.b64decode(wrapped.removeprefix(f"{AWS_KMS}:"), validate=True)
        except ValueError:
            raise WrappingError(f"key {key_id} is not base64 behind {AWS_KMS}:") from None
        return bytes(self._ask("decrypt", key_id, CiphertextBlob=blob)["Plaintext"])

    def _ask(self, action: str, key_id: str, **question: bytes) -> dict[str, Any]:
        client = self.client()
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            # KMS opens a ciphertext only with the context that it was made with, and writes it into CloudTrail.
            context = {"gateway-master-key": key_id}
            answer: dict[str, Any] = getattr(client, action)(KeyId=self.key, EncryptionContext=context, **question)
        except ClientError as fault:
            code = fault.response.get("Error", {}).get("Code", "no code")
            raise WrappingError(f"AWS KMS refuses to {action} key {key_id} ({code})") from None
        except BotoCoreError as fault:
            raise WrappingError(f"AWS KMS cannot be asked ({type(fault).__name__})") from None
        return answer

    def client(self) -> Any:
        """Raises: WrappingError."""
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ImportError:
            raise WrappingError("AWS KMS needs boto3: install requirements-aws.lock") from None
        bounds = Config(connect_timeout=self.timeout_s, read_timeout=self.timeout_s, retries={"total_max_attempts": 2})
        try:
            return boto3.client("kms", config=bounds)
        except BotoCoreError as fault:  # no region, or a profile that is not there
            raise WrappingError(f"AWS KMS cannot be asked ({type(fault).__name__})") from None
