"""poolhook's built-in plugins, registered by entry points like anyone's."""
