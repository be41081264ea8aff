"""The families that poolhook serves, and how each runs. `docs/families.md` is made of this table, and tests check it.

A row says what differs from the tiny model that all families have in common; which heads a family has is read from
transformers (see `making`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from families.making import MAPPINGS

Way = Literal["packed", "adapter", "padded", "by length"]
"""As in `BuiltEngine.forward`; `adapter` is packed by an adapter of poolhook's own."""


@dataclass(frozen=True)
class Family:
    """A row.

    Args:
        name: `model_type` in `config.json`.
        way: how it runs.
        values: of its configuration, on top of what all tiny models have in common.
        variant: what sets it apart from the family's usual row.
        is_common: tested in every run, not only with the large tests.
        refused: heads that transformers has and poolhook refuses; see `refusals`.
    """

    name: str
    way: Way = "packed"
    values: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    is_common: bool = False
    refused: Sequence[str] = ()

    @property
    def title(self) -> str:
        return f"{self.name}, {self.variant}" if self.variant else self.name

    @property
    def heads(self) -> list[str]:
        """`embed`, and the heads for labels; for what only predicts the next word also `causal_lm`."""
        heads = [head for head, names in MAPPINGS.items() if self.name in names and head not in self.refused]
        if "masked_lm" in heads and "causal_lm" in heads:
            heads.remove("causal_lm")
        return ["embed", *(head for head in heads if head != "masked_lm")]


def common(name: str, way: Way = "packed", variant: str = "", refused: Sequence[str] = (), **values: Any) -> Family:
    return Family(name, way, values, variant, True, refused)


def other(name: str, way: Way = "packed", variant: str = "", refused: Sequence[str] = (), **values: Any) -> Family:
    return Family(name, way, values, variant, False, refused)


_DEBERTA: dict[str, Any] = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "max_relative_positions": -1,
    "position_biased_input": False,
    "type_vocab_size": 0,
}
_DEBERTA_V3 = {**_DEBERTA, "position_buckets": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
_LATENT_ATTENTION = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
_STATES = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_n_groups": 1,
    "mamba_d_state": 8,
    "mamba_chunk_size": 16,
}
_LINEAR_ATTENTION = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
_WINDOWED = ["sliding_attention", "full_attention"]
_CONVOLUTION = ["conv", "full_attention"]
_LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0] * 4,
    "long_factor": [2.0] * 4,
    "original_max_position_embeddings": 40,
    "factor": 4.0,
}
_T5GEMMA = {
    "vocab_size": 200,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 160,
    "sliding_window": 12,
}

ENCODERS = [
    common("albert"),
    common("bert"),
    other("big_bird", "padded", attention_type="original_full"),
    common("camembert"),
    common("convbert", "by length"),
    other("data2vec-text"),
    common("deberta", "padded", **_DEBERTA),
    common("deberta-v2", "adapter", "v2 and v3", **_DEBERTA_V3),
    common("deberta-v2", "padded", "v2 xlarge (a convolution)", **_DEBERTA_V3, conv_kernel_size=3, conv_act="gelu"),
    common("distilbert"),
    common("electra"),
    common("ernie"),
    common("esm", position_embedding_type="rotary"),
    common("esm", "padded", "token_dropout", position_embedding_type="rotary", token_dropout=True),
    other("esmc", num_key_value_heads=4),
    common("eurobert"),
    common("eurobert", variant="classifier_pooling mean", classifier_pooling="mean"),
    common("flaubert", "padded"),
    common("fnet", "by length"),
    common("gte"),
    other("ibert", "padded"),
    common("jina_embeddings_v3"),
    other("layoutlm", "padded"),
    common("longformer", "padded", refused=["classify"], attention_window=[8, 8]),
    other("luke", "padded", entity_vocab_size=10, entity_emb_size=8),
    common("megatron-bert", "padded"),
    common("mobilebert", "by length", true_hidden_size=32, intra_bottleneck_size=32),
    common("modernbert", layer_types=_WINDOWED),
    common("modernbert", variant="classifier_pooling mean", layer_types=_WINDOWED, classifier_pooling="mean"),
    common("mpnet", "adapter"),
    common("mt5", "padded", "the encoder alone", ["classify"]),
    common("nomic_bert"),
    other("nystromformer", "by length", num_landmarks=4, segment_means_seq_len=4),
    other("openai_privacy_filter", "padded"),
    other(
        "reformer",
        "by length",
        "with a hash_seed",
        ["causal_lm"],
        attn_layers=["local", "lsh"],
        attention_head_size=8,
        feed_forward_size=64,
        axial_pos_embds_dim=[16, 16],
        axial_pos_shape=[12, 16],
        max_position_embeddings=192,
        is_decoder=False,
        hash_seed=0,
    ),
    common("rembert", "padded"),
    common("roberta"),
    common("roberta-prelayernorm"),
    other("roc_bert", pronunciation_vocab_size=40, shape_vocab_size=40),
    common("roformer", "padded"),
    other("squeezebert", "padded"),
    common("t5", "padded", "the encoder alone", ["classify"]),
    other("t5gemma", "padded", "the encoder alone", is_encoder_decoder=False, encoder=_T5GEMMA, decoder=_T5GEMMA),
    other("umt5", "padded", "the encoder alone", ["classify"]),
    common("xlm", "padded"),
    common("xlm-roberta"),
    common("xlm-roberta-xl"),
    common("xlnet", "padded"),
    other("xlnet", "padded", "summary_type mean", summary_type="mean"),
    other("xmod", variant="with a default_language", default_language="en_XX"),
]

DECODERS = [
    other("afmoe"),
    other("apertus"),
    other("arcee"),
    other("bamba", "padded", **_STATES, attn_layer_indices=[1]),
    other("bert-generation"),
    other("biogpt"),
    other("bitnet"),
    common("bloom", "padded"),
    other("codegen", rotary_dim=4),
    other("cohere"),
    other("cohere2", layer_types=_WINDOWED),
    other("ctrl", dff=64),
    other("cwm"),
    other("deepseek_v2", **_LATENT_ATTENTION),
    other("deepseek_v3", **_LATENT_ATTENTION),
    other("diffllama"),
    other("doge", "padded"),
    other("ernie4_5"),
    other("ernie4_5_moe"),
    other("exaone4"),
    other("falcon", "padded"),
    other("falcon_h1", "padded", "", ["causal_lm"], **_STATES, mamba_d_ssm=64),
    other("falcon_mamba", "padded"),
    other("flex_olmo"),
    common("gemma"),
    common("gemma2"),
    common("gemma3_text", layer_types=_WINDOWED),
    common(
        "gemma3_text",
        variant="use_bidirectional_attention",
        layer_types=_WINDOWED,
        use_bidirectional_attention=True,
    ),
    other("glm"),
    other("glm4"),
    other("glm4_moe"),
    common("gpt2"),
    common("gpt2", variant="no pad_token_id", pad_token_id=None),
    other("gpt_bigcode"),
    other("gpt_neo", "padded", attention_types=[[["global", "local"], 1]], window_size=12),
    common("gpt_neox"),
    other("gpt_neox_japanese", "padded"),
    other("gpt_oss", "padded"),
    other("gptj", rotary_dim=4),
    common("granite"),
    other("granitemoe"),
    other("granitemoehybrid", "padded", **_STATES, layer_types=["mamba", "attention"]),
    other("granitemoeshared"),
    other("helium"),
    other("hunyuan_v1_dense"),
    other("hunyuan_v1_moe"),
    other("jamba", "padded", attn_layer_period=2, attn_layer_offset=1, mamba_d_state=8, use_mamba_kernels=False),
    other("jetmoe"),
    common("lfm2", "padded", layer_types=_CONVOLUTION),
    other("lfm2_moe", "padded", layer_types=_CONVOLUTION, num_dense_layers=1),
    common("llama"),
    other("llama4_text", "padded", "", ["causal_lm"]),
    other("mamba", "padded"),
    other("mamba2", "padded", num_heads=8, head_dim=8, state_size=8, n_groups=1, chunk_size=16),
    other("minimax", "padded"),
    other("ministral"),
    other("ministral3"),
    common("mistral"),
    other("mixtral"),
    other("modernbert-decoder"),
    other("mpt", "padded"),
    other("nanochat"),
    other("nemotron"),
    other("olmo"),
    other("olmo2"),
    other("olmo3"),
    other("olmo_hybrid", "padded"),
    other("olmoe"),
    other("openai-gpt", "padded"),
    common("opt"),
    common("opt", variant="word_embed_proj_dim", word_embed_proj_dim=16),
    other("persimmon"),
    other("phi", num_key_value_heads=4),
    common("phi3"),
    common("phi3", "by length", "longrope or dynamic", rope_parameters=_LONG_ROPE, original_max_position_embeddings=40),
    other("phimoe", "padded"),
    common("qwen2"),
    other("qwen2_moe"),
    common("qwen3"),
    common("qwen3_5_text", "padded", **_LINEAR_ATTENTION),
    other("qwen3_moe"),
    other("qwen3_next", "padded", **_LINEAR_ATTENTION),
    other("recurrent_gemma", "padded", num_hidden_layers=3),
    other("seed_oss"),
    other("smollm3"),
    other("solar_open"),
    other("stablelm"),
    other("starcoder2"),
    other("vaultgemma"),
    other("xglm", "padded", attention_heads=4, num_layers=2),
]

FAMILIES = {family.title: family for family in [*ENCODERS, *DECODERS]}
