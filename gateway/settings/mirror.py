"""The copies of the payment provider's objects, which dj-stripe keeps in BILLING_MODE=stripe. docs/decisions/0049"""

from gateway.settings.billing import BILLING_MODE

MIRROR_APPS = ["billing.mirror.app.MirrorConfig"] if BILLING_MODE == "stripe" else []
DJSTRIPE_FOREIGN_KEY_TO_FIELD = "id"
# The library would look for a person by the metadata of a customer. A customer belongs to an organization.
DJSTRIPE_SUBSCRIBER_CUSTOMER_KEY = None
