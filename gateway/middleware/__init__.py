"""What every web request passes. The hot path does not come by here."""
