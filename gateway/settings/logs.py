"""Logs: one JSON object per line on standard error; gateway.lib.masking masks every event."""

from __future__ import annotations

from typing import Any

import structlog

from gateway.lib.masking import mask_event
from gateway.settings import env

_shared: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": [structlog.stdlib.ExtraAdder(), *_shared],
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                mask_event,  # just before rendering, so that no processor adds unmasked data after it
                structlog.processors.JSONRenderer(),
            ],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO").upper()},
    "loggers": {
        # uvicorn installs its own handler before it imports the application, and that one does not mask.
        "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn.access": {"handlers": [], "propagate": False},  # off; it would inherit uvicorn's handler
        "django.server": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        # These libraries log tokens at debug level.
        "mozilla_django_oidc": {"level": "WARNING"},
        "oauth2_provider": {"level": "WARNING"},
        "oauthlib": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        # The provider's library logs bodies at debug level.
        "stripe": {"level": "WARNING"},
    },
}
structlog.configure(
    processors=[*_shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)
