"""Pure: Celery's queues, for the settings and for the commands that start workers."""

SHIPPING_QUEUE = "gateway-shipping"
SHIPPING_THREADS = "32"  # without SHIPPING_CONCURRENCY
SHIPPING_NICENESS = 10  # a catch-up takes the processor time that calls leave
