"""Past and coming events that other apps must take part in, sent inside the transaction that makes them true.

A receiver that raises undoes the change.
"""

from __future__ import annotations

from django.dispatch import Signal

# organization: about to be deleted with all its rows; receivers destroy what must go first.
organization_deleting = Signal()
# organization_id, user_id: no longer a member; what was given out in the membership's name must die with it.
member_removed = Signal()
