"""How long a stopping web process waits for balancers and for calls. Seconds from SIGTERM. Contract: 7"""

from gateway.settings import env

# The longest time that a vendor may have for one call is 300 s.
DRAIN_SECONDS = env.integer("DRAIN_SECONDS", 35, low=1, high=360)
# The embedded default has no balancer.
DELAY_WITH_BALANCER_S = 5
DRAIN_DELAY_SECONDS = env.integer("DRAIN_DELAY_SECONDS", 0 if env.EMBEDDED else DELAY_WITH_BALANCER_S, low=0, high=120)
