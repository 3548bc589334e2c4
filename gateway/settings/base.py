"""Django itself: apps, middleware, database, templates, static files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.settings import env

BASE_DIR = env.BASE_DIR
EMBEDDED = env.EMBEDDED
DEBUG = False
# Where the embedded default keeps its database, queues and logs; production needs it only for the coordination
# file of a deployment without Redis.
VAR = Path(env.text("VAR", str(BASE_DIR / "var"))).resolve()

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "django_htmx",
    "mozilla_django_oidc",
    "rest_framework",
    "drf_spectacular",
    "gateway.apps.GatewayConfig",
    "gateway.catalog.apps.CatalogConfig",
    "audit.apps.AuditConfig",
    "orgs.apps.OrgsConfig",
    "billing.apps.BillingConfig",
    "oauth_ext.apps.OAuthExtConfig",
    "oauth2_provider",
    "credentials.apps.CredentialsConfig",
    "proxy.apps.ProxyConfig",
]

# The web chain. /v1/* does not pass it: gateway.asgi hands those requests to the lean handler.
MIDDLEWARE = [
    "gateway.middleware.request_id.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "gateway.middleware.response_headers.ResponseHeadersMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "gateway.middleware.cross_site.CrossSiteMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "gateway.middleware.errors.DomainErrorMiddleware",
]

ROOT_URLCONF = "gateway.urls"
ASGI_APPLICATION = "gateway.asgi.application"
APPEND_SLASH = False  # a redirect would drop POST bodies: D26

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"


def _database() -> dict[str, Any]:
    url = env.text("DATABASE_URL")
    # A path goes in as it is: in an address, + and % would mean something else.
    config: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(VAR / "gateway.sqlite3")}
    if url:
        try:
            config = env.reader.db_url_config(url)
        except Exception:
            env.refuse("DATABASE_URL", "is not a database address such as postgres://user@host:5432/name.")
    if config["ENGINE"] == "django.db.backends.sqlite3":
        if not EMBEDDED:
            env.refuse("DATABASE_URL", "must name a PostgreSQL database in production.")
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",  # a deferred transaction that upgrades fails at once under contention
            "timeout": 5,  # seconds for a lock; a page that waits longer is better told to come back
            # FULL: a row that was acknowledged survives a power cut, not only a killed process.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
        }
    elif config["ENGINE"] == "django.db.backends.postgresql":
        # Without the pool, ASGI opens one server process per request.
        size = env.integer("DATABASE_POOL_SIZE", 10, low=2, high=200)
        # The pool doubles its pauses while the server is away. An attempt that is given up early is begun anew by the
        # next request, so that the pause after an outage of minutes is a second and not minutes.
        pool = {"min_size": 1, "max_size": size, "timeout": 2, "reconnect_timeout": 1}
        config["OPTIONS"] = {**config.get("OPTIONS", {}), "pool": pool}
        config["CONN_MAX_AGE"] = 0
        config["CONN_HEALTH_CHECKS"] = True
    else:
        env.refuse("DATABASE_URL", "must name a PostgreSQL or SQLite database.")
    return config


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.text("REDIS_URL")
# Cached values are conveniences; what must be exact goes through gateway.coordination.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "gateway"}
}

AUTH_USER_MODEL = "orgs.User"
SESSION_ENGINE = "gateway.web.sessions"  # in the database: sessions outlive a lost Redis
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "/static/"
# The image collects and compresses at build; the embedded default serves the source files as they are.
STATIC_ROOT = None if EMBEDDED else BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "gateway" / "static"]
WHITENOISE_USE_FINDERS = EMBEDDED
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if EMBEDDED
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WEB_PROCESSES = env.integer("WEB_PROCESSES", 1, low=1, high=256)
VENDOR_CATALOG = env.text("VENDOR_CATALOG")
