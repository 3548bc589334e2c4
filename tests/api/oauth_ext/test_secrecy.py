"""No secret in a log line, at any level and after any failure."""

from __future__ import annotations

import base64
import logging

import pytest

from oauth_ext.bearer import InvalidBearer
from oauth_ext.jwt import rotation
from oauth_ext.services.agent_keys import mint_agent_key
from tests.api.oauth_ext.conftest import Service, basic, post
from tests.api.oauth_ext.devices import start_device
from tests.api.oauth_ext.flow import make_flow
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast


def test_logs_of_every_path(
    cast: Cast, service: Service, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("oauth_ext", "oauth2_provider", "django"):
        caplog.set_level(logging.DEBUG, logger=name)
    token = service.token()
    agent_key = mint_agent_key(actor=cast.user("owner"), client=service.client).agent_key
    wrong = "wr0ng-secret-of-a-client"
    post(service.fields(client_secret=wrong))
    post({"grant_type": "client_credentials"}, Authorization=basic(service.client.client_id, wrong))
    post(service.fields(scope="nope"))
    post({"grant_type": "authorization_code", "code": "c0de-of-a-grant", "client_id": service.client.client_id})
    load_identity(token)
    load_identity(agent_key)
    other_end = "1" if agent_key.endswith("0") else "0"
    for bad in (f"{token}x", f"{agent_key[:-1]}!", f"{agent_key[:-1]}{other_end}"):
        with pytest.raises(InvalidBearer):
            load_identity(bad)
    of_flows = walk_the_flows(cast, service)
    rotation.rotate_signing_key(at_once=True)
    captured = capfd.readouterr()
    text = caplog.text + captured.out + captured.err
    assert "rotated the signing key" in text  # something was logged at all
    secrets = [service.secret, service.basic.split()[1], wrong, token, token.rpartition(".")[2], agent_key]
    secrets += [agent_key.rpartition("_")[2], "c0de-of-a-grant"]
    secrets += [base64.b64encode(f"{service.client.client_id}:{wrong}".encode()).decode()]
    assert [secret for secret in [*secrets, *of_flows] if secret in text] == []


def walk_the_flows(cast: Cast, service: Service) -> list[str]:
    """Codes and refresh tokens, used well and badly; returns all that must stay secret."""
    flow = make_flow(cast)
    unused, code = flow.code(), flow.code()
    first = flow.redeem(code).json()
    second = flow.refresh(first["refresh_token"]).json()
    flow.refresh(second["refresh_token"])
    flow.refresh(first["refresh_token"])  # a replay, which ends the family
    flow.redeem(code)
    flow.redeem(unused, code_verifier="wr0ng" * 10)
    device = start_device(service)
    device.poll()
    cast.client("stranger").post("/device", {"user_code": device.user_code})
    device.decide(cast.client("member"))
    third = device.patient_poll().json()
    post({"token": third["refresh_token"]}, "/oauth/revoke")
    tokens = [pair[name] for pair in (first, second, third) for name in ("access_token", "refresh_token")]
    codes = [device.device_code, device.user_code, device.user_code.replace("-", "")]
    return [unused, code, flow.verifier, *tokens, *codes]
