"""What a model directory says (`ModelSpec`), and loading the weights."""

from poolhook.models.adapters import adapt
from poolhook.models.architectures import objection_to_mixing, objection_to_packing, padding_id
from poolhook.models.late_interaction import LateInteraction, Role, TextRole
from poolhook.models.load import load_model
from poolhook.models.overrides import override
from poolhook.models.quiet import quiet_transformers
from poolhook.models.read import read_spec
from poolhook.models.source import resolve_model
from poolhook.models.spec import ModelSpec

__all__ = [
    "LateInteraction",
    "ModelSpec",
    "Role",
    "TextRole",
    "adapt",
    "load_model",
    "objection_to_mixing",
    "objection_to_packing",
    "override",
    "padding_id",
    "quiet_transformers",
    "read_spec",
    "resolve_model",
]
