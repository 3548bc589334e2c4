from audit.shipping.platforms.platform import Platform


class Elasticsearch(Platform):
    value, title, aliases = "platform_a", "Elasticsearch", ()

    def request(self, target, events, *, now, token):
        raise NotImplementedError
