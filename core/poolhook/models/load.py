"""Loading a model's weights with transformers, and refusing to serve one that lacks some."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from poolhook.errors import ModelError, shorten
from poolhook.models.quiet import quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from poolhook.models.spec import ModelSpec


def load_model(spec: ModelSpec, device: torch.device, dtype: torch.dtype) -> PreTrainedModel:
    """The transformer without its head, in evaluation mode on `device`.

    Only safetensors weights are read, and no code from the model directory is run.

    Raises:
        ModelError: there are no safetensors weights, they can't be read, or some of the model's are missing.
    """
    from transformers import AutoConfig, AutoModel

    path = spec.transformer_path
    if not any(path.glob("*.safetensors")):
        raise ModelError(
            f"{path} holds no safetensors weights, and poolhook reads no pickled ones, since loading those runs code. "
            "Convert them: load the model with transformers and call save_pretrained."
        )
    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
            model, report = AutoModel.from_pretrained(
                path,
                config=config,
                dtype=dtype,
                trust_remote_code=False,
                local_files_only=True,
                use_safetensors=True,
                output_loading_info=True,
                **_without_pooling_layer(config),
            )
    except Exception as error:
        # transformers raises OSError, ValueError, RuntimeError, SafetensorError and others for weights that do not fit.
        raise ModelError(
            f"The weights in {path} can't be loaded: {type(error).__name__}: {shorten(str(error), 500)}"
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelError(
            f"The weights in {path} lack {len(missing)} of the tensors ({shorten(', '.join(missing))}); "
            "served as it is, the model would answer with random numbers."
        )
    loaded: PreTrainedModel = model.to(device).eval().requires_grad_(False)
    return loaded


def _without_pooling_layer(config: Any) -> dict[str, bool]:
    """BERT-likes end in a dense layer for next-sentence prediction, which most checkpoints lack and pooling ignores."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    model_class = MODEL_MAPPING[type(config)]
    # A family with several base models has none of these layers.
    takes_it = inspect.isclass(model_class) and "add_pooling_layer" in inspect.signature(model_class).parameters
    return {"add_pooling_layer": False} if takes_it else {}
