"""The performance report of `make bench`: vendor, bare pass-through and gateway side by side, in one run."""
