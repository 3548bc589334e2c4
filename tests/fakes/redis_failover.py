"""A Redis with a replica, Sentinel that promotes it, and HAProxy as the one address that follows the primary."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.fakes.programs import running, tethered
from tests.fakes.redis_server import PASSWORD, RedisServer, redis_server
from tests.vendors.processes import ROOT, free_port

# The file that docs/install.md names, with the places that an operator fills in.
CONFIGURATION = ROOT / "deploy" / "haproxy.cfg"
SENTINEL = """
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor gateway 127.0.0.1 {primary} 1
sentinel auth-pass gateway "{password}"
sentinel down-after-milliseconds gateway 1000
sentinel failover-timeout gateway 5000
"""


def has_haproxy() -> bool:
    return shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin") is not None


@dataclass
class FailoverRedis:
    """`url` leads to the primary of the moment."""

    primary: RedisServer
    replica: RedisServer
    port: int

    @property
    def url(self) -> str:
        return self.primary.url_through(self.port)

    def is_promoted(self) -> bool:
        # Sentinel closes all connections of the one that it promotes.
        with contextlib.suppress(redis.exceptions.ConnectionError):
            role = self.replica.ask("ROLE")
            return isinstance(role, list) and role[0] == b"master"
        return False


@contextlib.contextmanager
def failover_redis(folder: Path) -> Iterator[FailoverRedis]:
    """The replica follows, and the address leads to the primary."""
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        primary, replica = (stack.enter_context(redis_server()) for _ in range(2))
        replica.ask("REPLICAOF", "127.0.0.1", primary.port)
        sentinel_port, port = free_port(), free_port()
        sentinel = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sentinel-"))) / "sentinel.conf"
        sentinel.write_text(
            SENTINEL.format(port=sentinel_port, folder=sentinel.parent, primary=primary.port, password=PASSWORD)
        )
        command = tethered(["redis-server", str(sentinel), "--sentinel"])
        stack.enter_context(running(command, sentinel_port, folder / "sentinel.log"))
        file = folder / "haproxy.cfg"
        file.write_text(configured(port, primary.port, replica.port))
        stack.enter_context(running(tethered(["/usr/sbin/haproxy", "-f", str(file)]), port, folder / "haproxy.log"))
        yield FailoverRedis(primary, replica, port)


def configured(port: int, *servers: int) -> str:
    """deploy/haproxy.cfg for servers of this computer."""
    text = CONFIGURATION.read_text()
    changes = {"bind :6379": f"bind 127.0.0.1:{port}", "redis-1:6379": f"127.0.0.1:{servers[0]}"}
    changes["redis-2:6379"] = f"127.0.0.1:{servers[1]}"
    # The password of tests has blanks and a quote, which the file's own line takes none of.
    login = f'AUTH "{PASSWORD}"\r\n'.encode().hex()
    changes['send "AUTH ${REDIS_PASSWORD}\\r\\n"'] = f"send-binary {login}"
    for before, after in changes.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text
