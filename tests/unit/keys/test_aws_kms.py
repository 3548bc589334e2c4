"""AWS KMS as a key service: its questions, by botocore's own model of the API, and each refusal as one sentence."""

from __future__ import annotations

import base64
import builtins
import os
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber

from gateway.keys.aws_kms import AwsKms
from gateway.keys.wrapping import WrappingError, open_keyring

pytestmark = pytest.mark.one_back_end
KEY, BLOB = os.urandom(32), os.urandom(150)
CONTEXT = {"gateway-master-key": "2027"}
ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ENTRY = f"aws-kms:{base64.b64encode(BLOB).decode()}"


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> Stubber:
    """Answers are queued on it; a question that was not expected fails."""
    client = boto3.client("kms", region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b")
    monkeypatch.setattr(AwsKms, "client", lambda self: client)
    return Stubber(client)


def test_a_key_is_wrapped_and_opened_in_its_context(stubbed: Stubber) -> None:
    asked = {"KeyId": ARN, "EncryptionContext": CONTEXT}
    stubbed.add_response("encrypt", {"CiphertextBlob": BLOB, "KeyId": ARN}, {**asked, "Plaintext": KEY})
    stubbed.add_response("decrypt", {"Plaintext": KEY, "KeyId": ARN}, {**asked, "CiphertextBlob": BLOB})
    with stubbed:
        service = AwsKms(ARN)
        assert service.wrap("2027", KEY) == ENTRY
        assert dict(open_keyring(f"2027:{ENTRY}", {"aws-kms": service}).keys) == {"2027": KEY}


@pytest.mark.parametrize("code", ["AccessDeniedException", "InvalidCiphertextException", "NotFoundException"])
def test_refusals_name_the_code_and_nothing_else(stubbed: Stubber, code: str) -> None:
    stubbed.add_client_error("decrypt", code, "words of the server")
    with stubbed, pytest.raises(WrappingError) as caught:
        AwsKms(ARN).unwrap("2027", ENTRY)
    assert str(caught.value) == f"AWS KMS refuses to decrypt key 2027 ({code})"


def test_what_is_not_base64(stubbed: Stubber) -> None:
    with pytest.raises(WrappingError, match="not base64 behind aws-kms:"):
        AwsKms(ARN).unwrap("2027", "aws-kms:!")


@pytest.mark.parametrize("fault", [NoCredentialsError(), EndpointConnectionError(endpoint_url="https://kms.example")])
def test_a_service_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    class Away:
        def decrypt(self, **question: Any) -> None:
            raise fault

    monkeypatch.setattr(AwsKms, "client", lambda self: Away())
    with pytest.raises(WrappingError) as caught:
        AwsKms(ARN).unwrap("2027", ENTRY)
    assert str(caught.value) == f"AWS KMS cannot be asked ({type(fault).__name__})"


def test_without_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(WrappingError, match=r"cannot be asked \(NoRegionError\)"):
        AwsKms(ARN).client()


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    find = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "boto3":
            raise ImportError(name)
        return find(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(WrappingError, match=r"install requirements-aws\.lock"):
        AwsKms(ARN).unwrap("2027", ENTRY)
