"""A real PgBouncer in transaction mode before a PostgreSQL of this computer, where it is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.postgresql_server import USER, PostgreSQLServer, as_server_user
from tests.fakes.programs import Program, running
from tests.vendors.processes import free_port

CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 5
"""


def is_installed() -> bool:
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") is not None


@contextlib.contextmanager
def pgbouncer(folder: Path, server: PostgreSQLServer) -> Iterator[Program]:
    folder.mkdir(parents=True)
    port = free_port()
    file = folder / "pgbouncer.ini"
    file.write_text(CONFIGURATION.format(server=server.port, port=port, user=USER))
    # It refuses to run as root.
    with running(as_server_user(["/usr/sbin/pgbouncer", str(file)]), port, folder / "log") as program:
        yield program
