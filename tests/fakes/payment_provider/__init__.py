"""A stand-in for the payment provider, written from its public documentation.

`provider.Provider(settings).app()` is the ASGI application (with `control.control_route` where tests steer it),
`python -m tests.fakes.payment_provider` its process and
`running.payment_provider()` that process for a test.
"""
