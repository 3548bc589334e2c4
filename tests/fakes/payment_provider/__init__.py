"""A stand-in for the payment provider, written from its public documentation.

`running.payment_provider()` starts it as a process, for tests of whole lives. Tests of single requests serve the part
that they ask in their own threads (`tests/fakes/small_stripe.py`), where they can break each answer.
"""
