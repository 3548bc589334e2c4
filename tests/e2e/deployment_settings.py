"""The service's settings, with keys of its own in a Redis that several deployments share, and more patience with it.

A suite may run on a machine that is busy with other things. A slow Redis has tests of its own; here it would only make
exact counts inexact now and then.
"""

import os

from gateway.coordination import redis_store
from gateway.settings import *  # noqa: F403
from gateway.settings import CACHES

COORDINATION_PREFIX = os.environ["DEPLOYMENT_PREFIX"]
CACHES["default"]["KEY_PREFIX"] = COORDINATION_PREFIX
redis_store.OPERATION_TIMEOUT_S = 2.0
