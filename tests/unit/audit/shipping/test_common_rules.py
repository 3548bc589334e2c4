"""Rules that several platforms share: a path behind a base address, tokens in headers, the status of an answer."""

from __future__ import annotations

import pytest

from audit.shipping.platforms.better_stack import BetterStack
from audit.shipping.platforms.elasticsearch import Elasticsearch
from audit.shipping.platforms.exchange import BatchRefused, DestinationRefused, InvalidDestination, RetryLater, Verdict
from audit.shipping.platforms.logscale import LogScale
from audit.shipping.platforms.loki import Loki
from audit.shipping.platforms.platform import Platform
from audit.shipping.platforms.splunk import Splunk
from tests.unit.audit.shipping.samples import BATCH, NOW, answer, target

HOST = "https://logs.example"
STATUSES = {
    DestinationRefused: (301, 302, 303, 308, 401, 403, 404, 405),
    BatchRefused: (413,),
    RetryLater: (408, 429, 500, 503),
}


def of(*platforms: Platform) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("platform", platforms, ids=lambda each: each.title)


@pytest.mark.parametrize(
    ("platform", "path"),
    [(Splunk(), "/services/collector/event"), (LogScale(), "/api/v1/ingest/hec"), (Loki(), "/loki/api/v1/push")],
)
def test_the_path_is_added_to_a_base_address(platform: Platform, path: str) -> None:
    def address(url: str) -> str:
        return platform.request(target(url, token="t"), BATCH, now=NOW, token="").url

    assert address(HOST) == f"{HOST}{path}"
    assert address(f"{HOST}:8088/") == f"{HOST}:8088{path}"
    assert address(f"{HOST}:8088/mine{path}") == f"{HOST}:8088/mine{path}"


@of(BetterStack(), LogScale(), Splunk())
@pytest.mark.parametrize("token", [" t", "t ", "t\n", "a\nb", "t\r\nHost: evil.example", "t\0", "töken"])
def test_a_token_that_would_break_its_header_is_refused(platform: Platform, token: str) -> None:
    url = platform.preset_url or HOST
    platform.check(url, {"token": "0a1b2c3d-ingest"})
    with pytest.raises(InvalidDestination) as refused:
        platform.check(url, {"token": token})
    assert (refused.value.code, [*refused.value.fields]) == ("config_missing", ["token"])


@of(Elasticsearch(), LogScale(), Loki(), Splunk())
@pytest.mark.parametrize(("status", "kind"), [(each, kind) for kind, found in STATUSES.items() for each in found])
def test_the_status_decides_and_a_wish_to_wait_is_passed_on(
    platform: Platform, status: int, kind: type[Verdict]
) -> None:
    verdict = platform.read(answer(status, "no", {"Retry-After": "7"}), BATCH)
    assert isinstance(verdict, kind)
    assert getattr(verdict, "retry_after_s", 7) == 7


@of(Elasticsearch(), LogScale(), Loki(), Splunk())
def test_a_web_page_is_no_delivery(platform: Platform) -> None:
    verdict = platform.read(answer(200, "\n<!doctype html><title>Sign in</title>"), BATCH)
    assert isinstance(verdict, RetryLater)
