"""SECRET_KEY is replaced: sessions of a former value go on, others end, and a weak former value is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.conf import LazySettings

from orgs.services.browser_sessions import sessions_in_force
from tests.factories.cast import Cast

NEW = "another one for the suite: 9876543210zyxwvutsrqponm"


@pytest.mark.parametrize(("keeps_former", "status"), [(True, 200), (False, 401)])
def test_sessions_of_a_former_value(cast: Cast, settings: LazySettings, keeps_former: bool, status: int) -> None:
    browser = cast.client("member", is_noted=False)
    assert browser.get("/profile").status_code == 200
    former, settings.SECRET_KEY = settings.SECRET_KEY, NEW
    settings.SECRET_KEY_FALLBACKS = [former] if keeps_former else []
    assert len(sessions_in_force(cast.user("member"))) == keeps_former
    assert browser.get("/api/profile").status_code == status
    # The session is signed anew: the former value may go.
    settings.SECRET_KEY_FALLBACKS = []
    assert browser.get("/api/profile").status_code == status


def test_a_weak_former_value_is_refused() -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "GATEWAY_MODE": "embedded",
        "SECRET_KEY": NEW,
        "SECRET_KEY_FALLBACKS": f"{NEW},short",
    }
    done = subprocess.run(
        [sys.executable, "-c", "import gateway.settings"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "SECRET_KEY_FALLBACKS" in done.stderr, NEW in done.stderr) == (78, True, False)
