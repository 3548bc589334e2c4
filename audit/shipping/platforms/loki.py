from audit.shipping.platforms.platform import Platform


class Loki(Platform):
    value, title, aliases = "platform_b", "Loki", ()

    def request(self, target, events, *, now, token):
        raise NotImplementedError
