"""One file per grant of the token endpoint. What is listed in `oauth_ext.features` is on; nothing else is reachable."""
