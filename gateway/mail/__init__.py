"""E-mail: an outbox, kinds of messages, one rule of unsubscribing. `outbox.py` is the interface. docs/decisions/0097"""
