"""Signals for other apps, sent inside the transaction. A receiver that raises undoes the change."""

from django.dispatch import Signal

# organization: deleted at the end of this transaction. Receivers destroy what must go before the rows.
organization_deleting = Signal()
# organization_id, user_id: no longer a member. Receivers revoke what was issued in the membership's name.
member_removed = Signal()
# organization_id, domain: no longer the organization's, after it was confirmed. Receivers revoke what it proved.
mail_domain_released = Signal()
