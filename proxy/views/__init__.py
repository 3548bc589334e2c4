"""The four routes of the hot path as async Django views. They translate; the pipeline decides."""
