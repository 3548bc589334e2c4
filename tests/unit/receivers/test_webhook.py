"""The receiver of Standard Webhooks verifies as the specification's own library does."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.receivers import Receiver
from tests.unit.receivers.talking import Answer, send

pytestmark = pytest.mark.one_back_end
# The test vector of the specification's libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
AT, BODY = 1614265330, b'{"test": 2432232314}'
HEADERS = {
    "Content-Type": "application/json",
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(AT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
OTHER_SECRET = "whsec_" + base64.b64encode(b"another secret of 24 bytes!!").decode()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver("webhook", secrets=[SECRET], clock=lambda: datetime.fromtimestamp(AT, UTC)) as started:
        yield started


def hook(receiver: Receiver, body: bytes = BODY, **headers: str) -> Answer:
    return send(receiver, "/hook", body, {**HEADERS, **{name.replace("_", "-"): it for name, it in headers.items()}})


def signature(secret: str, body: bytes = BODY, at: str = str(AT), webhook_id: str = HEADERS["webhook-id"]) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{webhook_id}.{at}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def test_the_documented_vector_and_its_retry(receiver: Receiver) -> None:
    assert signature(SECRET) == HEADERS["webhook-signature"]
    later = str(AT + 60)
    assert hook(receiver).status == 200
    assert hook(receiver, webhook_timestamp=later, webhook_signature=signature(SECRET, at=later)).status == 200
    assert receiver.events == 2 * [{"id": HEADERS["webhook-id"], "payload": {"test": 2432232314}}]
    assert receiver.violations == []


def test_two_secrets_have_two_signatures() -> None:
    clock = lambda: datetime.fromtimestamp(AT, UTC)  # noqa: E731
    with Receiver("webhook", secrets=[OTHER_SECRET, SECRET], clock=clock) as receiver:
        both = f"{signature(OTHER_SECRET)} {signature(SECRET)}"
        assert hook(receiver, webhook_signature=both).status == 200
        assert receiver.violations == []
        assert hook(receiver).status == 401
        assert receiver.violations == ["no signature by secret 0"]


def test_a_signature_of_another_kind_beside_it(receiver: Receiver) -> None:
    assert hook(receiver, webhook_signature=f"v1a,hnO3f9T8 {HEADERS['webhook-signature']}").status == 200
    assert receiver.violations == []


@pytest.mark.parametrize(
    ("headers", "status", "sentence"),
    [
        ({"webhook_signature": ""}, 400, "the webhook- headers are not those that are due"),
        ({"webhook_id": ""}, 400, "the webhook- headers are not those that are due"),
        ({"webhook_timestamp": ""}, 400, "the webhook- headers are not those that are due"),
        ({"webhook_signature": signature(OTHER_SECRET)}, 401, "no signature by secret 0"),
        ({"webhook_signature": signature(SECRET, BODY + b" ")}, 401, "no signature by secret 0"),
        ({"webhook_signature": signature(SECRET).removeprefix("v1,")}, 400, "is no signature"),
        ({"webhook_signature": "v1,*"}, 400, "a signature is not base64"),
        ({"webhook_id": "msg_other"}, 401, "no signature by secret 0"),
        ({"webhook_timestamp": str(AT + 301)}, 400, "is not that of the attempt"),
        ({"webhook_timestamp": str(AT - 301)}, 400, "is not that of the attempt"),
        ({"webhook_timestamp": f"{AT}.5"}, 400, "is not in whole seconds"),
        ({"webhook_timestamp": f"{AT}000"}, 400, "is not in whole seconds"),
    ],
)
def test_a_request_that_is_not_authentic(
    receiver: Receiver, headers: dict[str, str], status: int, sentence: str
) -> None:
    assert hook(receiver, **headers).status == status
    assert len(receiver.violations) == 1
    assert sentence in receiver.violations[0]
    assert receiver.events == []


def test_other_breaches(receiver: Receiver) -> None:
    hook(receiver)
    hook(receiver, b"{}", webhook_signature=signature(SECRET, b"{}"))
    hook(receiver, webhook_id="a.b", webhook_signature=signature(SECRET, webhook_id="a.b"))
    hook(receiver, webhook_signature=f"{signature(SECRET)} {signature(SECRET)}")
    hook(receiver, b"[", webhook_id="c", webhook_signature=signature(SECRET, b"[", webhook_id="c"))
    assert receiver.violations == [
        "the id msg_p5jXN8AQM9LWM0D4loKWxJek came with another body before",
        "the id has a full stop, which ends it in the signed text",
        "2 signatures for 1 secrets",
        "Expecting value: line 1 column 2 (char 1)",
    ]


def test_without_a_secret_there_is_no_signature() -> None:
    with Receiver("webhook", path="/hook", clock=lambda: datetime.fromtimestamp(AT, UTC)) as receiver:
        assert hook(receiver, webhook_signature="").status == 200
        assert receiver.violations == []
        assert hook(receiver).status == 400
        assert receiver.violations == ["the webhook- headers are not those that are due"]
