"""Every logger logs through our formatter."""

from __future__ import annotations

import subprocess
import sys

# In the order of a start: the server configures its loggers, without an access log, then we.
START = """
import logging
from uvicorn.config import Config
Config("gateway.asgi:application", access_log=False)
import django
django.setup()
logging.getLogger("uvicorn.error").error("failed with Authorization: Bearer abcdefghijklmnop")
print(logging.getLogger("uvicorn.access").hasHandlers())
"""


def test_the_servers_errors_are_masked_and_its_access_log_is_off() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    assert done.stderr.startswith('{"event": "failed with Authorization: Bearer [hidden]"')
    assert done.stdout == "False\n"
