from audit.shipping.platforms.platform import Platform


class AzureMonitor(Platform):
    value, title, aliases = "platform_g", "AzureMonitor", ()

    def request(self, target, events, *, now, token):
        raise NotImplementedError
