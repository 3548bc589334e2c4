"""What several processes must agree on within a millisecond: rate windows, epochs, vendor health state.

`store.py` is the interface, `redis_store.py` serves many hosts, `sqlite_store.py` serves one host without Redis, and
`degrading.py` decides what happens while Redis is away. `window.py` holds the arithmetic. `current()` in `registry.py`
is how the rest of the code reaches the configured store.
"""
