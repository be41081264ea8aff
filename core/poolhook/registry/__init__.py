"""Discovery: which plugins are installed, read from metadata alone, and importing the ones that were selected."""

from poolhook.registry.discovery import GROUPS, IO_PROCESSORS, WRAPPERS, PluginRef, installed_plugins
from poolhook.registry.load import load, select

__all__ = ["GROUPS", "IO_PROCESSORS", "WRAPPERS", "PluginRef", "installed_plugins", "load", "select"]
