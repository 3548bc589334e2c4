"""E-mail: where messages go, and how many. Spec: D167 · docs/decisions/0097"""

from email.utils import parseaddr

from django.core.exceptions import ImproperlyConfigured

from gateway.coordination.rules import Rule
from gateway.settings import env
from gateway.settings.base import VAR
from gateway.settings.security import BASE_URL

_url = env.text("EMAIL_URL")
# server: EMAIL_URL says where. files: the embedded default. off: no message is written. No function needs e-mail.
MAIL_DELIVERY = "server" if _url else "files" if env.EMBEDDED else "off"
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend" if MAIL_DELIVERY == "files" else ""
EMAIL_FILE_PATH = str(VAR / "mail")
if _url:
    try:
        globals().update(env.reader.email_url_config(_url))
    except (ImproperlyConfigured, ValueError):
        env.refuse("EMAIL_URL", "must be an address such as smtp+tls://user:password@mail.example.com:587.")
EMAIL_BACKEND = EMAIL_BACKEND or "django.core.mail.backends.dummy.EmailBackend"
if EMAIL_BACKEND == "django.core.mail.backends.smtp.EmailBackend":
    EMAIL_BACKEND = "gateway.mail.smtp.BoundedEmailBackend"
EMAIL_TIMEOUT = 10  # seconds for one step of the conversation with the mail server
EMAIL_MESSAGE_TIMEOUT = 30  # seconds for all steps of one message; another 30 for those of the sign-in before the first
EMAIL_SUBJECT_PREFIX = ""

_host = BASE_URL.partition("://")[2].partition(":")[0]
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("EMAIL_FROM", f"Gateway <gateway@{_host}>")
if "@" not in parseaddr(DEFAULT_FROM_EMAIL)[1] or any(each in DEFAULT_FROM_EMAIL for each in "\r\n"):
    env.refuse("EMAIL_FROM", "must be an address such as Gateway <gateway@example.com>.")
# Message-IDs are made of it.
MAIL_HOST = parseaddr(DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]

# Messages to people who may not know the organization: of one organization, and to one address from all of them.
INVITATION_MAILS = Rule(
    "invitation-mails", limit=env.integer("INVITATION_MAILS_PER_DAY", 200, low=1, high=100_000), window_s=86_400
)
INVITATION_MAILS_TO_ADDRESS = Rule("invitation-mails-to-address", limit=5, window_s=86_400)
INVITATION_ADDRESSES = 50  # in one request
MAIL_KEPT_DAYS = 30  # rows of messages that have ended
