"""Programs that connect to the gateway as their users do, and what plays the browser for them."""
