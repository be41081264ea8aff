"""What a model directory says (`ModelSpec`), and loading the weights."""

from poolhook.models.architectures import objection_to_mixing, objection_to_packing
from poolhook.models.load import load_model
from poolhook.models.quiet import quiet_transformers
from poolhook.models.source import resolve_model
from poolhook.models.spec import ModelSpec, read_spec

__all__ = [
    "ModelSpec",
    "load_model",
    "objection_to_mixing",
    "objection_to_packing",
    "quiet_transformers",
    "read_spec",
    "resolve_model",
]
