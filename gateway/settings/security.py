"""Hosts, cookies, keys and browser security headers. A weak value stops the start."""

from secrets import token_urlsafe
from urllib.parse import urlsplit

from gateway.settings import env

SECRET_KEY = env.text("SECRET_KEY", token_urlsafe(48) if env.HELPER else "")
# Earlier values, newest first: what they signed still counts, and nothing new is signed with them.
SECRET_KEY_FALLBACKS = env.names("SECRET_KEY_FALLBACKS")


def _is_weak(key: str) -> bool:
    return len(key) < 32 or len(set(key)) < 10 or key.startswith("django-insecure")


if _is_weak(SECRET_KEY):
    env.refuse("SECRET_KEY", "must be set to at least 32 random characters.")
if any(map(_is_weak, SECRET_KEY_FALLBACKS)):
    env.refuse("SECRET_KEY_FALLBACKS", "must hold former values of SECRET_KEY, of at least 32 random characters each.")

# Issuer, resource and links are built from this URL, never from the Host header.
BASE_URL = env.text("BASE_URL", f"http://127.0.0.1:{env.text('PORT', '8000')}" if env.EMBEDDED else "").rstrip("/")
_base = urlsplit(BASE_URL)
if _base.scheme not in {"http", "https"} or not _base.hostname or _base.path or _base.query or _base.username:
    env.refuse("BASE_URL", "must be the service's own address, such as https://gateway.example.com, without a path.")
if _base.scheme == "http" and not env.EMBEDDED:
    env.refuse("BASE_URL", "must begin with https:// in production.")
HTTPS = _base.scheme == "https"

ALLOWED_HOSTS = env.names("ALLOWED_HOSTS") or [_base.hostname]
if "*" in ALLOWED_HOSTS:
    env.refuse("ALLOWED_HOSTS", "must name the hosts; * would let anyone choose the Host header.")
if env.EMBEDDED:
    ALLOWED_HOSTS = sorted({*ALLOWED_HOSTS, "127.0.0.1", "localhost", "[::1]"})
# Origins that may call /v1 from a browser, besides the gateway's own and loopback ones.
ALLOWED_ORIGINS = frozenset(origin.rstrip("/") for origin in env.names("ALLOWED_ORIGINS"))
# Only these peers' X-Forwarded-For counts. D21
TRUSTED_PROXIES = tuple(env.names("TRUSTED_PROXIES"))
ALLOW_PRIVATE_ENDPOINTS = env.flag("ALLOW_PRIVATE_ENDPOINTS", default=env.EMBEDDED)

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "gateway_session"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "gateway_csrf"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_FAILURE_VIEW = "gateway.site.errors.csrf_failure"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],  # Bootstrap draws its icons from data: addresses
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_100  # one checkbox for each tool of the longest tool list that is read
WEB_BODY_BYTES = 512 * 1024  # any request outside /v1: the largest limit of D18 there
