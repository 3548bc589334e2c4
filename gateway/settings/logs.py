"""Logs: one JSON object a line on standard error, with the masking of gateway.lib.masking below every call."""

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
                mask_event,  # last but one: nothing is added behind it, whoever logged
                structlog.processors.JSONRenderer(),
            ],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO").upper()},
    "loggers": {
        # The server sets up a handler of its own before it imports us, and that one does not mask.
        "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn.access": {"handlers": [], "propagate": False},  # off; it would come back with its parent
        "django.server": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        # The library writes token requests and answers at debug level.
        "mozilla_django_oidc": {"level": "WARNING"},
        "oauth2_provider": {"level": "WARNING"},
        "oauthlib": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
    },
}
structlog.configure(
    processors=[*_shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)
