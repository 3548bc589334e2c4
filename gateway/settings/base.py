"""Django itself: apps, middleware, database, templates, static files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.settings import env
from gateway.settings.database import HOT_PATH_CONNECTIONS as HOT_PATH_CONNECTIONS
from gateway.settings.database import HOT_PATH_TIMEOUTS as HOT_PATH_TIMEOUTS
from gateway.settings.database import database_entry
from gateway.settings.mirror import MIRROR_APPS

BASE_DIR = env.BASE_DIR
EMBEDDED = env.EMBEDDED
DEBUG = False
# Database, queues and logs of the embedded default. Production uses it only for the coordination file of a deployment
# without Redis.
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
    "gateway.coordination.apps.CoordinationConfig",
    "gateway.keys.apps.KeysConfig",
    "gateway.mail.apps.MailConfig",
    "gateway.catalog.apps.CatalogConfig",
    "gateway.status.apps.StatusConfig",
    "audit.apps.AuditConfig",
    "orgs.apps.OrgsConfig",
    "billing.apps.BillingConfig",
    "oauth_ext.apps.OAuthExtConfig",
    "oauth2_provider",
    "credentials.apps.CredentialsConfig",
    "proxy.apps.ProxyConfig",
    "gateway.web.apps.WebConfig",
    *MIRROR_APPS,
]

# The middleware of pages and API. /v1/* bypasses it: gateway.asgi hands those requests to the hot path's handler.
MIDDLEWARE = [
    "gateway.middleware.request_id.RequestIdMiddleware",
    "gateway.middleware.compression.CompressionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "gateway.middleware.response_headers.ResponseHeadersMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "gateway.middleware.page_language.PageLanguageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "gateway.middleware.cross_site.CrossSiteMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "gateway.web.sign_in_refresh.SignInRefresh",
    "gateway.web.session_use.SessionUse",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "gateway.middleware.errors.DomainErrorMiddleware",
]

ROOT_URLCONF = "gateway.urls"
ASGI_APPLICATION = "gateway.asgi.application"
APPEND_SLASH = False  # D26: a redirect would drop POST bodies

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
            "builtins": ["gateway.web.templatetags.sentences"],
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"


DATABASES = {"default": database_entry(VAR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
MIGRATION_MODULES = {
    # All its models are swapped: its 22 migrations would create no table and take two thirds of a first start's time.
    "oauth2_provider": None,
    # Its own make 62 tables in 80 s.
    "djstripe": "billing.djstripe_migrations",
}
REDIS_URL = env.text("REDIS_URL")
# One address that takes all commands, of a cluster: keys of one command must share a slot. docs/decisions/0052
REDIS_CLUSTER = env.flag("REDIS_CLUSTER", False)

AUTH_USER_MODEL = "orgs.User"
SESSION_ENGINE = "gateway.web.sessions"  # in the database, so that sessions survive a lost Redis
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

LANGUAGE_CODE = "en"
# The languages of pages. A language is offered when its catalog in locale/ is complete.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "gateway.formats"
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_AGE = 365 * 86_400
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
# The image collects and compresses static files at build time; the embedded default serves the sources.
STATIC_ROOT = None if EMBEDDED else BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "gateway" / "static"]
WHITENOISE_USE_FINDERS = EMBEDDED
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if EMBEDDED
        else "gateway.site.static_files.HashedStaticFiles"
    },
}


def _processes() -> tuple[int, int]:
    """(web processes of this host, web processes of all hosts together)."""
    here = env.integer("WEB_PROCESSES", 1, low=1, high=256)
    return here, env.integer("DEPLOYMENT_PROCESSES", here, low=here, high=10_000)


# While Redis is unavailable, each process enforces its limit divided by DEPLOYMENT_PROCESSES. D23
WEB_PROCESSES, DEPLOYMENT_PROCESSES = _processes()

# The cache holds the page counters of django-ratelimit; state that must be exact is in gateway.coordination.
_REDIS_CACHE: dict[str, Any] = {
    "BACKEND": "django.core.cache.backends.redis.RedisCache",
    "LOCATION": REDIS_URL,
    "KEY_PREFIX": "gateway",
    "OPTIONS": {
        "pool_class": "gateway.lib.shared_redis_pool.SharedRedisPool",
        # Seconds, as in gateway.coordination.redis_store. Without them a page would wait forever for a hung Redis.
        "socket_timeout": 1.0,
        "socket_connect_timeout": 1.0,
    },
}
_MEMORY_CACHE: dict[str, Any] = {
    "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
    "LOCATION": "gateway",
    "OPTIONS": {"MAX_ENTRIES": 20_000},  # about 10 MB; the least recently used counters are dropped first
}
CACHES = {"default": _REDIS_CACHE if REDIS_URL else _MEMORY_CACHE}
# Without Redis the cache counts for one process only. Of several, the exact limiter counts pages: processes of one host
# share its file, and Django has no cache without a server that increments atomically. docs/decisions/0017
RATELIMIT_ENABLE = bool(REDIS_URL) or WEB_PROCESSES == 1
VENDOR_CATALOG = env.text("VENDOR_CATALOG")
