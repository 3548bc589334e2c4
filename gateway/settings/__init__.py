"""Settings composed of parts: `base` holds all defaults, the environment switches; there is no production-only file."""

# `workers` is not imported here: only Celery reads it, and web processes do without the library.
from gateway.settings.api import *  # noqa: F403
from gateway.settings.base import *  # noqa: F403
from gateway.settings.billing import *  # noqa: F403
from gateway.settings.callers import *  # noqa: F403
from gateway.settings.deprecation import *  # noqa: F403
from gateway.settings.health import *  # noqa: F403
from gateway.settings.keys import *  # noqa: F403
from gateway.settings.limits import *  # noqa: F403
from gateway.settings.logs import *  # noqa: F403
from gateway.settings.mail import *  # noqa: F403
from gateway.settings.metrics import *  # noqa: F403
from gateway.settings.mirror import *  # noqa: F403
from gateway.settings.oauth import *  # noqa: F403
from gateway.settings.processes import *  # noqa: F403
from gateway.settings.recovery import *  # noqa: F403
from gateway.settings.security import *  # noqa: F403
from gateway.settings.shipping import *  # noqa: F403
from gateway.settings.stopping import *  # noqa: F403
from gateway.settings.tools import *  # noqa: F403
from gateway.settings.usage import *  # noqa: F403
