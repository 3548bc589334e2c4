"""Settings, composed of parts: base holds everything, the environment switches; there is no production-only file.

One part stands alone: `workers` is read by Celery, which the web process does without.
"""

from gateway.settings.api import *  # noqa: F403
from gateway.settings.base import *  # noqa: F403
from gateway.settings.billing import *  # noqa: F403
from gateway.settings.deprecation import *  # noqa: F403
from gateway.settings.health import *  # noqa: F403
from gateway.settings.limits import *  # noqa: F403
from gateway.settings.logs import *  # noqa: F403
from gateway.settings.oauth import *  # noqa: F403
from gateway.settings.security import *  # noqa: F403
from gateway.settings.tools import *  # noqa: F403
