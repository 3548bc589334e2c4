from audit.shipping.platforms.platform import Platform


class LogScale(Platform):
    value, title, aliases = "platform_e", "LogScale", ()

    def request(self, target, events, *, now, token):
        raise NotImplementedError
