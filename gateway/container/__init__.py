"""The programs of the image: the roles of a container, and the `manage` command inside it."""
