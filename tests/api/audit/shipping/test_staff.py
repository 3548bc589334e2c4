"""Support staff read destinations, without their configuration and without the paths of their addresses."""

from __future__ import annotations

from io import StringIO

from django.core.management import call_command

from audit.models import DeliveryHour, LogDestination, RefusedRecord
from gateway.lib import clock
from tests.factories.cast import Cast
from tests.factories.destinations import webhook_of

SECRET = "a-signing-secret-that-nobody-may-read"


def test_staff_see_the_state_alone(cast: Cast) -> None:
    url = "https://logs.example.com/path-with-a-secret"
    destination = webhook_of(cast.user("owner"), cast.org, url=url, secret=SECRET)
    hour = DeliveryHour.objects.create(destination=destination, hour=clock.now(), delivered=3)
    refused = RefusedRecord.objects.create(
        destination=destination, log="admin", row_id=destination.pk, reason="bad field", refused_at=clock.now()
    )
    call_command("make_staff", "stranger@example.com", stdout=StringIO())
    browser = cast.client("stranger")
    for model, row in (("logdestination", destination), ("deliveryhour", hour), ("refusedrecord", refused)):
        for address in (f"/admin/audit/{model}/", f"/admin/audit/{model}/?q={destination.pk}"):
            assert "SIEM" in browser.get(address).content.decode(), address
        answer = browser.get(f"/admin/audit/{model}/{row.pk}/change/")
        page = answer.content.decode()
        assert answer.status_code == 200
        assert "SIEM" in page
        assert "path-with-a-secret" not in page
        assert SECRET not in page
        assert "a-si" not in page
    listed = browser.get("/admin/audit/logdestination/").content.decode()
    assert "logs.example.com" in listed
    assert "path-with-a-secret" not in listed
    assert browser.post(f"/admin/audit/logdestination/{destination.pk}/delete/").status_code == 403
    assert LogDestination.objects.exists()
