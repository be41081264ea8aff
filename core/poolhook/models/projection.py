"""Linear layers behind the transformer: sentence-transformers' Dense modules, and BGE-M3's two heads."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from poolhook.config import LoadFormat
from poolhook.errors import ModelError, shorten
from poolhook.models.modules import DenseLayer
from poolhook.models.spec import ModelSpec
from poolhook.models.weights import read_tensors

_MODULE_STEMS = ("model", "pytorch_model")


class Dense(nn.Module):
    """`activation(linear(x))`, plus `x` or its projection where there is a residual, as sentence-transformers' Dense.

    Takes and gives float32 rows, shape `[n, in]` and `[n, out]`.
    """

    def __init__(self, linear: nn.Linear, activation: nn.Module, residual: nn.Module | None) -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation
        self.residual = residual

    def forward(self, rows: Tensor) -> Tensor:
        """Project rows."""
        projected: Tensor = self.activation(self.linear(rows))
        return projected if self.residual is None else projected + self.residual(rows)


def load_projection(spec: ModelSpec, device: torch.device, load_format: LoadFormat) -> nn.Module | None:
    """The linear layers of `spec` one after the other; None if there are none.

    Raises:
        ModelError: weights are missing or of another shape, or an activation is none of torch's.
    """
    if not spec.dense:
        return None
    chain = nn.Sequential(*(_dense(layer, load_format) for layer in spec.dense))
    size = spec.hidden_size * (1 if spec.late_interaction is not None else len(spec.pooling))
    for layer, dense in zip(spec.dense, chain, strict=True):
        if isinstance(dense, Dense) and dense.linear.in_features != size:
            raise ModelError(f"{layer.path} takes {dense.linear.in_features} dimensions, but {size} come in.")
        if isinstance(dense, Dense) and isinstance(dense.residual, nn.Identity) and layer.size != size:
            raise ModelError(f"The weights of {layer.path} lack the residual layer's.")
        size = layer.size
    return chain.to(device).eval().requires_grad_(False)


def load_bge_m3_heads(spec: ModelSpec, device: torch.device, load_format: LoadFormat) -> tuple[nn.Linear, nn.Linear]:
    """BGE-M3's projections of a token: to its weight, and to its vector.

    Raises:
        ModelError: their weights can't be read.
    """
    heads = [
        linear_of(read_tensors(spec.path, stem, "", load_format), spec.path / stem)
        for stem in ("sparse_linear", "colbert_linear")
    ]
    sparse, colbert = (head.to(device).eval().requires_grad_(False) for head in heads)
    return sparse, colbert


def linear_of(tensors: dict[str, Tensor], where: Path) -> nn.Linear:
    """A linear layer of `weight` and maybe `bias`.

    Raises:
        ModelError: there is no weight, or the two make no linear layer.
    """
    weight, bias = tensors.get("weight"), tensors.get("bias")
    if weight is None:
        raise ModelError(f"The weights of {where} lack the linear layer's.")
    if weight.dim() != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        shapes = [list(tensor.shape) for tensor in (weight, bias) if tensor is not None]
        raise ModelError(f"The weights of {where} have the shapes {shapes}, which make no linear layer.")
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    linear.load_state_dict({"weight": weight} if bias is None else {"weight": weight, "bias": bias})
    return linear


def _dense(layer: DenseLayer, load_format: LoadFormat) -> Dense:
    tensors: dict[str, dict[str, Tensor]] = {"linear.": {}, "residual.": {}}
    for prefix, found in tensors.items():
        for stem in _MODULE_STEMS if load_format == "pt" else _MODULE_STEMS[:1]:
            found |= read_tensors(layer.path, stem, prefix, load_format)
    linear = linear_of(tensors["linear."], layer.path)
    if linear.out_features != layer.size:
        raise ModelError(f"{layer.path} states {layer.size} dimensions, but its weights have {linear.out_features}.")
    if (linear.bias is not None) != layer.bias:
        raise ModelError(f"{layer.path} states bias: {str(layer.bias).lower()}, and its weights are otherwise.")
    residual: nn.Module | None = None
    if layer.residual:
        residual = linear_of(tensors["residual."], layer.path) if tensors["residual."] else nn.Identity()
    return Dense(linear, _activation(layer), residual)


def _activation(layer: DenseLayer) -> nn.Module:
    package, _, name = layer.activation.rpartition(".")
    found = getattr(nn, name, None)
    # Only torch's own classes that need no arguments: a name in a file must not choose what code runs.
    if package.partition(".")[0] != "torch" or not (
        isinstance(found, type) and found.__module__.startswith("torch.nn")
    ):
        raise ModelError(f"{layer.path} has the activation {shorten(layer.activation)!r}, which is none of torch.nn's.")
    try:
        made = found()
    except TypeError as error:
        raise ModelError(f"{layer.path} has the activation {layer.activation!r}, which needs arguments.") from error
    if not isinstance(made, nn.Module):
        raise ModelError(f"{layer.path} has the activation {layer.activation!r}, which is no module.")
    return made
