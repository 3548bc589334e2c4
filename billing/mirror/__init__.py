"""The mirror: copies of the provider's customers, subscriptions and events, kept by dj-stripe for support staff.

It is there in BILLING_MODE=stripe only, and no rule asks it: `billing.entitlements` decides who has a plan.
"""
