"""What is known of a family where the model directory says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poolhook.config import PoolingType
from poolhook.errors import ModelError, shorten

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from poolhook.models.spec import Head

# RoBERTa and its kin keep the positions up to their padding id for padding: the first token's position follows it.
_POSITIONS_AFTER_PADDING = frozenset(
    {
        "camembert",
        "data2vec-text",
        "esm",
        "ibert",
        "layoutlmv3",
        "lilt",
        "longformer",
        "luke",
        "markuplm",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)
_MPNET_PADDING = 1  # MPNet fixes it in code, whatever its config says


_HEADS: dict[str, Head] = {
    "ForSequenceClassification": "sequence",
    "ForTokenClassification": "token",
    "ForProcessRewardModel": "reward",
    "ForRewardModel": "reward",
}
_REWARD_LABELS = {"ForProcessRewardModel": ("bad", "good"), "ForRewardModel": ("reward",)}
_OTHER_HEADS = ("ForQuestionAnswering", "ForMultipleChoice", "ForNextSentencePrediction")


def refuse_unsupported(architecture: str, config: PretrainedConfig, *, is_embedder: bool) -> None:
    """Raise for what poolhook does not serve, naming it.

    Args:
        architecture: the class name in `config.json`.
        config: what transformers makes of that file.
        is_embedder: the directory has sentence-transformers' files.

    Raises:
        ModelError: an encoder-decoder (its encoder alone is served), a head for another task, or no model of text.
    """
    if config.is_encoder_decoder and not (has_encoder_alone(config) and _is_encoder(architecture, is_embedder)):
        raise ModelError(
            f"{architecture} is an encoder-decoder; poolhook serves encoders and decoders, and of T5 and its kin the "
            'encoder alone. Set "architectures": ["T5EncoderModel"] in hf_overrides if that is what you want.'
        )
    text = config.get_text_config()
    if not hasattr(text, "vocab_size") or not hasattr(text, "hidden_size"):
        raise ModelError(f"{architecture} reads no token ids; poolhook serves models of text.")
    for name in ("vocab_size", "hidden_size"):
        size = getattr(text, name)
        if type(size) is not int or size < 1:
            raise ModelError(f"{name} in config.json must be a positive integer, not {shorten(size)}.")
    if getattr(config, "attention_type", None) == "block_sparse":
        raise ModelError(
            f"{architecture} attends to blocks, and in another way once it has seen a short text. "
            'Set "attention_type": "original_full" in its config.json to have it served.'
        )
    for head in _OTHER_HEADS:
        if architecture.endswith(head):
            raise ModelError(
                f"{architecture} ends in a head for a task that poolhook does not have. Heads that it serves: "
                f"{', '.join(_HEADS)}."
            )


def refuse_unknown(architecture: str) -> None:
    """Raise for a name that an operator chose and that means nothing.

    Raises:
        ModelError: neither transformers nor poolhook has such a class.
    """
    import transformers

    if head_of(architecture) != "reward" and not hasattr(transformers, architecture):
        raise ModelError(
            f"hf_overrides choose the architecture {shorten(architecture)!r}, which transformers does not have."
        )


def has_encoder_alone(config: PretrainedConfig) -> bool:
    """Whether the family is an encoder-decoder of which transformers can load the encoder only. A directory that was
    saved so mostly says that it is no encoder-decoder, so `is_encoder_decoder` does not count."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES

    name: str = MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.get(config.model_type, "")
    return name.endswith("EncoderModel")


def _is_encoder(architecture: str, is_embedder: bool) -> bool:
    # sentence-transformers runs the encoder alone, whatever the weights end in; a head for tokens stands on it too.
    return architecture.endswith(("EncoderModel", "ForTokenClassification")) or is_embedder


def head_of(architecture: str) -> Head | None:
    """What the architecture's name says that the weights end in; None if its hidden states are the answer."""
    return next((head for ending, head in _HEADS.items() if architecture.endswith(ending)), None)


def reward_labels(architecture: str) -> tuple[str, ...] | None:
    """The labels of a reward model, which its files do not name."""
    return next((labels for ending, labels in _REWARD_LABELS.items() if architecture.endswith(ending)), None)


def objection_to_packing(config: PretrainedConfig) -> str | None:
    """Why sequences of this model can't be laid end to end, where only long texts would show it; None if they can."""
    if getattr(config, "attention_chunk_size", None):
        return "it attends in chunks of the whole batch's positions"
    if getattr(config, "attn_temperature_tuning", False) or getattr(config, "floor_scale", None):
        return "it scales its queries by their place in the batch"
    return objection_to_mixing(config)


def objection_to_mixing(config: PretrainedConfig) -> str | None:
    """Why a text's vector would depend on the longest text of its batch, even a padded one; None if it does not."""
    if getattr(config, "lsh_attn_chunk_length", None):
        return "it attends in chunks, of which the longest text of a batch has the most"
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    layers = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    kinds = {layer.get("rope_type", layer.get("type")) for layer in layers}
    if kinds & {"longrope", "dynamic"}:
        return "its rotary positions change with the longest text of a batch"
    return None


def default_pooling(config: PretrainedConfig, *, has_head: bool = False) -> PoolingType:
    """CLS for bidirectional encoders, LAST for decoders, MEAN for the rest; with a head, what it most likely reads.

    A family with a masked-language-model head was trained to look both ways, and its first token is there to be
    pooled; one with only a causal head has seen the whole text at its last token alone.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    if has_head and getattr(config, "classifier_pooling", None) == "mean":
        return PoolingType.MEAN
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return PoolingType.CLS
    looks_both_ways = getattr(config, "use_bidirectional_attention", False) or not getattr(config, "is_causal", True)
    if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not looks_both_ways:
        return PoolingType.LAST
    return PoolingType.MEAN


def padding_id(config: PretrainedConfig) -> int | None:
    """The padding token's id; None if the configuration names none, or has no such entry (CodeGen's)."""
    padding: int | None = getattr(config.get_text_config(), "pad_token_id", None)
    return padding


def position_offset(config: PretrainedConfig) -> int:
    """The position id of the first token.

    Raises:
        ModelError: it follows from the padding token, and there is none.
    """
    if config.model_type not in _POSITIONS_AFTER_PADDING:
        return 0
    padding: int | None = _MPNET_PADDING if config.model_type == "mpnet" else config.pad_token_id
    if padding is None:
        raise ModelError(f"config.json must state pad_token_id: a {config.model_type} counts its positions from it.")
    return padding + 1


def position_count(config: PretrainedConfig) -> int | None:
    """Rows of the position table, or the length that the positions were trained for; None if unlimited."""
    count = getattr(config, "max_position_embeddings", None)
    return count if isinstance(count, int) and count > 0 else None


def sliding_window(config: PretrainedConfig) -> int | None:
    """Positions in the window of the layers that have one; None if no layer has."""
    window = getattr(config, "sliding_window", None)
    in_use = getattr(config, "use_sliding_window", True)
    return window if isinstance(window, int) and in_use else None
