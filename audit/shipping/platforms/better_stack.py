from audit.shipping.platforms.platform import Platform


class BetterStack(Platform):
    value, title, aliases = "platform_d", "BetterStack", ()

    def request(self, target, events, *, now, token):
        raise NotImplementedError
