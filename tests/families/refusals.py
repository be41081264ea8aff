"""What poolhook refuses when it loads, each with the reason that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Refusal:
    """A model that transformers can make and poolhook does not serve.

    Args:
        what: in the words of the page.
        why: in the words of the page.
        family: `model_type` of a tiny model that shows it.
        head: `embed` or a key of `MAPPINGS`.
        message: part of the error.
        values: of its configuration.
    """

    what: str
    why: str
    family: str
    head: str
    message: str
    values: Mapping[str, Any] = field(default_factory=dict)


_ONE_OF_TWO = "Their answer comes from a decoder; of T5 and its kin the encoder alone is served."
_WANTS_MORE = "They want more than token ids: places on a page, or pictures."
_WITHOUT_HEAD = "As a reranker that answers with words: the last layers can't be run apart from the transformer."
_TINY_BART = {
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 8,
    "decoder_ffn_dim": 8,
}
_REFORMER = {
    "attn_layers": ["local", "lsh"],
    "attention_head_size": 8,
    "feed_forward_size": 64,
    "axial_pos_embds_dim": [16, 16],
    "axial_pos_shape": [12, 16],
    "max_position_embeddings": 192,
    "is_decoder": False,
}

REFUSALS = [
    Refusal("BART, mBART, Pegasus and others", _ONE_OF_TWO, "bart", "embed", "is an encoder-decoder", _TINY_BART),
    Refusal("T5, mT5 and UMT5 that classify texts", _ONE_OF_TWO, "t5", "classify", "is an encoder-decoder"),
    Refusal(
        "BigBird with block-sparse attention",
        "What a token attends to changes once the model has seen a short text. Full attention is served.",
        "big_bird",
        "embed",
        "attends to blocks",
        {"attention_type": "block_sparse"},
    ),
    Refusal(
        "Longformer that classifies texts",
        "Its first token attends to the whole text, and no other; embeddings and labels for tokens are served.",
        "longformer",
        "classify",
        "differs from the whole model",
        {"attention_window": [8, 8]},
    ),
    Refusal(
        "Funnel",
        "It can't run a text of one token.",
        "funnel",
        "embed",
        "can't be run on token ids",
        {"block_sizes": [1, 1], "num_decoder_layers": 1},
    ),
    Refusal(
        "Reformer without a hash_seed",
        "It hashes at random, so that no text gets the same vector twice.",
        "reformer",
        "embed",
        "differ from those of single sequences",
        _REFORMER,
    ),
    Refusal("CANINE", "It reads characters, not tokens.", "canine", "embed", "reads no token ids"),
    Refusal("BROS, LayoutLMv2 and v3", _WANTS_MORE, "bros", "embed", "can't be run on token ids"),
    Refusal(
        "X-MOD without a default_language",
        "Each language has layers of its own. Name one in its config.json.",
        "xmod",
        "embed",
        "Input language unknown",
    ),
    Refusal("Llama 4", _WITHOUT_HEAD, "llama4_text", "causal_lm", "can't be told from its transformer"),
    Refusal(
        "Falcon-H1",
        _WITHOUT_HEAD,
        "falcon_h1",
        "causal_lm",
        "can't be run apart from its transformer",
        {
            "mamba_n_heads": 8,
            "mamba_d_head": 8,
            "mamba_n_groups": 1,
            "mamba_d_state": 8,
            "mamba_d_ssm": 64,
            "mamba_chunk_size": 16,
        },
    ),
]
