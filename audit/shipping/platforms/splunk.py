from audit.shipping.platforms.platform import Platform


class Splunk(Platform):
    value, title, aliases = "platform_c", "Splunk", ()

    def request(self, target, events, *, now, token):
        raise NotImplementedError
