from audit.shipping.platforms.platform import Platform


class Otlp(Platform):
    value, title, aliases = "platform_f", "Otlp", ()

    def request(self, target, events, *, now, token):
        raise NotImplementedError
