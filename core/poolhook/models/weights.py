"""Tensors that lie beside or among a model's own weights, read by name, without pickled code unless allowed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from poolhook.config import LoadFormat
from poolhook.errors import ModelError, describe_error

if TYPE_CHECKING:
    from torch import Tensor

_PICKLED = ("*.bin", "*.pt")


def check_weights(path: Path, load_format: LoadFormat) -> bool:
    """Whether `path` holds safetensors weights; if not, it holds pickled ones that may be read.

    Raises:
        ModelError: there are none, or only pickled ones and those may not be read.
    """
    if any(path.glob("*.safetensors")):
        return True
    if load_format == "pt" and any(file for pattern in _PICKLED for file in path.glob(pattern)):
        return False
    raise ModelError(
        f"{path} holds no safetensors weights, and poolhook reads pickled ones only when told to, since that can run "
        "code. Convert them (load the model with transformers, call save_pretrained), or set load_format to 'pt', "
        "which reads them with torch's restricted unpickler."
    )


def read_tensors(path: Path, stem: str, prefix: str, load_format: LoadFormat) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, by the rest of their names, in float32.

    Args:
        path: a folder.
        stem: how its weight files' names start, such as `model`.
        prefix: of the tensors' names.
        load_format: whether pickled files may be read where there are no others.

    Raises:
        ModelError: there are no such files or they can't be read.
    """
    import torch
    from safetensors import safe_open

    found: dict[str, Tensor] = {}
    try:
        if check_weights(path, load_format) and (files := sorted(path.glob(f"{stem}*.safetensors"))):
            for file in files:
                with safe_open(file, framework="pt") as tensors:
                    names = [name for name in tensors.keys() if name.startswith(prefix)]  # noqa: SIM118 (no mapping)
                    found |= {name.removeprefix(prefix): tensors.get_tensor(name) for name in names}
        elif load_format == "pt":
            for file in sorted(file for pattern in _PICKLED for file in path.glob(f"{stem}{pattern}")):
                state = torch.load(file, map_location="cpu", weights_only=True)
                found |= {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}
        else:
            raise ModelError(
                f"{path} has {stem} only as pickled weights, which poolhook reads only when told to: set load_format "
                "to 'pt', or convert it to safetensors."
            )
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"The weights {stem} in {path} can't be read: {describe_error(error)}") from error
    return {name: tensor.float() for name, tensor in found.items()}
