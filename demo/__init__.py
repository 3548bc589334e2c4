"""The servers around the gateway in `make run`: a demonstration identity provider and a demonstration vendor."""
