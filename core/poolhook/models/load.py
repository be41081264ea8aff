"""Loading a model's weights with transformers, and refusing to serve one that lacks some."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from poolhook.config import LoadFormat
from poolhook.errors import ModelError, shorten
from poolhook.models.architectures import has_encoder_alone
from poolhook.models.config_file import read_hf_config
from poolhook.models.quiet import quiet_transformers
from poolhook.models.weights import check_weights

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

    from poolhook.models.spec import Head, ModelSpec

_AUTO_CLASSES: dict[Head, str] = {
    "none": "AutoModel",
    "sequence": "AutoModelForSequenceClassification",
    "token": "AutoModelForTokenClassification",
    "masked_lm": "AutoModelForMaskedLM",
    "causal_lm": "AutoModelForCausalLM",
    "reward": "AutoModel",
}


def load_model(
    spec: ModelSpec, device: torch.device, dtype: torch.dtype, load_format: LoadFormat = "safetensors"
) -> PreTrainedModel:
    """The transformer with the head that `spec` names, in evaluation mode on `device`. No code of the directory is run.

    Raises:
        ModelError: there are no weights, they can't be read, or some of the model's are missing.
    """
    path = spec.transformer_path
    is_safe = check_weights(path, load_format)
    config = read_hf_config(path, spec.hf_overrides)
    try:
        with quiet_transformers():
            model, report = _auto_class(spec.head, config).from_pretrained(
                path,
                config=config,
                dtype=dtype,
                trust_remote_code=False,
                local_files_only=True,
                use_safetensors=is_safe,
                output_loading_info=True,
                **_without_pooling_layer(spec.head, config),
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


def _auto_class(head: Head, config: PretrainedConfig) -> Any:
    import transformers

    # Of T5 and its kin the plain model would bring its decoder along.
    name = "AutoModelForTextEncoding" if head == "none" and has_encoder_alone(config) else _AUTO_CLASSES[head]
    return getattr(transformers, name)


def _without_pooling_layer(head: Head, config: PretrainedConfig) -> dict[str, bool]:
    """BERT-likes end in a dense layer for next-sentence prediction, which most checkpoints lack and pooling ignores."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    if _AUTO_CLASSES[head] != "AutoModel":
        return {}
    model_class = MODEL_MAPPING[type(config)]
    # A family with several base models has none of these layers.
    takes_it = inspect.isclass(model_class) and "add_pooling_layer" in inspect.signature(model_class).parameters
    return {"add_pooling_layer": False} if takes_it else {}
