"""The queue's connection to Redis: kombu's, whose worker outlives a connection that is lost while tasks run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ConnectionError as ConnectionLost


def use() -> None:
    """Addresses of Redis lead to `Transport` in this process."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), f"{__name__}:{Transport.__name__}"))


class Channel(redis.Channel):  # type: ignore[misc]
    """After a lost connection, tasks are acknowledged and given back on a channel that has no connection any more.

    kombu 5.7 fails there with an error that ends the worker. A connection error is one that Celery expects: the tasks
    come back by themselves after `visibility_timeout`.
    """

    @contextlib.contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """Raises: ConnectionLost."""
        if self.connection is None or self.connection.client is None:
            raise ConnectionLost("The connection to the queue was lost.")
        with super().conn_or_acquire(client) as acquired:
            yield acquired


class Transport(redis.Transport):  # type: ignore[misc]
    """kombu's, with this channel."""

    Channel = Channel
