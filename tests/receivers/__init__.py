"""Strict receivers of the platforms that logs are shipped to, written from the platforms' public documentation.

Each module names its sources. They know nothing of the senders: a fault here and the same fault there are two faults.
"""

from __future__ import annotations

from tests.receivers.faults import Fault
from tests.receivers.receiver import KINDS, Receiver

__all__ = ["KINDS", "Fault", "Receiver"]
