"""`ModelSpec`: everything that a model directory says about serving it, with the operator's overrides applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from poolhook.config import PoolingType
from poolhook.models.classification import Classifier
from poolhook.models.late_interaction import LateInteraction
from poolhook.models.modules import DenseLayer, Splade
from poolhook.tasks import PoolingTask, Similarity

Head = Literal["none", "sequence", "token", "masked_lm", "causal_lm", "reward"]
"""What the weights end in: nothing, transformers' classification of sequences or tokens, its language-model heads, or
the few layers of a reward model that transformers has no class for."""


@dataclass(frozen=True)
class ModelSpec:
    """What a model directory says.

    Args:
        name: what the user called the model.
        path: the model's directory.
        transformer_path: where in it the transformer's weights and tokenizer lie; mostly `path` itself.
        architecture: the class name in `config.json`, such as `BertModel`.
        model_type: the family in `config.json`, such as `bert`.
        hidden_size: dimensions of a hidden state.
        vocab_size: token ids run from 0 to this, exclusive.
        max_length: the longest prompt, in tokens, special tokens included.
        pooling: the pooling methods; the vectors of several are concatenated. For a classifier, what its head reads.
        normalize: whether embeddings are L2-normalised.
        head: what the weights end in.
        dense: linear layers after the pooling; on each token for late interaction.
        classifier: the labels of a model that has some.
        use_activation: whether the classifier's activation is applied where a request does not say.
        logit_mean: subtracted from a classifier's logits.
        logit_sigma: a classifier's logits are divided by it.
        splade: how a masked language model becomes a sparse embedder.
        late_interaction: what makes queries and documents of a model that answers with a vector for each token.
        is_bge_m3: it has BGE-M3's heads for sparse and multi-vector embeddings.
        tokens_only: rows of tokens are asked for where the model could answer with one row.
        step_tag_id: the token whose positions alone are answered.
        dimensions: the length to which embeddings are cut where a request does not say.
        is_chunked: texts longer than `max_length` are embedded in chunks.
        max_embed_len: the longest prompt then; None is no limit.
        include_prompt: whether the tokens of an instruction are pooled with the text's.
        messages: how texts are made chats of for the model's chat template; None if they are not.
        add_generation_prompt: what comes out of the chat template ends with what starts an answer.
        checkpoint_dtype: the dtype in which the weights were saved, such as `float32`; None if unsaid.
        position_offset: the position id of a sequence's first token.
        sliding_window: positions that a token attends to in the layers that have a window.
        prompts: texts to put before an input, by name, such as `query`.
        default_prompt_name: the prompt that is applied when none is named.
        similarity: how two embeddings are compared.
        truncation_side: the end of an over-long text that its tokenizer cuts away.
        do_lower_case: texts are lower-cased before tokenizing.
        matryoshka_dimensions: the lengths to which an embedding may be cut; None if the model was not trained for it,
            empty if it was for any length.
        io_processor_plugins: names in `config.json` of the IO processors that this model wants.
        hf_overrides: what the operator put over `config.json`.
        unread_end: a token id that its head does not read where a text ends in it; found out by loading it.
        origins: for each value that can come from several places, the one that decided it.
    """

    name: str
    path: Path
    transformer_path: Path
    architecture: str
    model_type: str
    hidden_size: int
    vocab_size: int
    max_length: int
    pooling: tuple[PoolingType, ...]
    normalize: bool
    head: Head = "none"
    dense: tuple[DenseLayer, ...] = ()
    classifier: Classifier | None = None
    use_activation: bool = True
    logit_mean: float | None = None
    logit_sigma: float | None = None
    splade: Splade | None = None
    late_interaction: LateInteraction | None = None
    is_bge_m3: bool = False
    tokens_only: bool = False
    step_tag_id: int | None = None
    dimensions: int | None = None
    is_chunked: bool = False
    max_embed_len: int | None = None
    include_prompt: bool = True
    messages: Literal["flat", "structured"] | None = None
    add_generation_prompt: bool = False
    checkpoint_dtype: str | None = None
    position_offset: int = 0
    sliding_window: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity: Similarity = "cosine"
    do_lower_case: bool = False
    truncation_side: Literal["left", "right"] = "right"
    matryoshka_dimensions: tuple[int, ...] | None = None
    io_processor_plugins: tuple[str, ...] = ()
    hf_overrides: Mapping[str, Any] = field(default_factory=dict)
    unread_end: int | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[PoolingTask, ...]:
        """What the model's pooler computes, before any plugin."""
        if self.splade is not None:
            return ("embed",)
        if self.classifier is not None:
            of_tokens = self.tokens_only or self.head in ("token", "reward")
            return ("token_classify",) if of_tokens else ("classify",)
        if self.late_interaction is not None or self.tokens_only:
            return ("token_embed",)
        if self.is_bge_m3:
            return ("embed", "token_embed", "token_classify", "plugin")
        return ("embed", "token_embed")

    @property
    def embedding_size(self) -> int:
        """Dimensions of an embedding that was not cut."""
        if self.splade is not None:
            return self.vocab_size
        if self.dense:
            return self.dense[-1].size
        return self.hidden_size * len(self.pooling)

    @property
    def answer(self) -> str:
        """How hidden states become the answer, in a few words for a log."""
        if self.splade is not None:
            return f"SPLADE over {self.vocab_size} words"
        if self.tasks == ("token_classify",) and self.classifier is not None:
            return f"{len(self.classifier.labels)} labels for {'each step' if self.step_tag_id else 'each token'}"
        pooling = "+".join(self.pooling)
        if self.classifier is not None:
            return f"pooling {pooling}, {len(self.classifier.labels)} labels, {self.classifier.activation}"
        kind = "a vector for each token" if self.tasks == ("token_embed",) else f"pooling {pooling}"
        return f"{kind}, {self.embedding_size} dimensions{', normalized' if self.normalize else ''}"
