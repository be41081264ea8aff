"""From a `ModelSpec` and a model's head to the pooler that computes its tasks."""

from __future__ import annotations

import torch
from torch import nn

from poolhook.config import LoadFormat
from poolhook.models import ModelSpec
from poolhook.models.projection import load_bge_m3_heads, load_projection
from poolhook.pooler import (
    BgeM3Pooler,
    BgeM3TokenPooler,
    ClassifyPooler,
    EmbedPooler,
    Pooler,
    SpladePooler,
    TaskPooler,
    TokenClassifyPooler,
    TokenEmbedPooler,
)
from poolhook.tasks import PoolingTask


def build_pooler(spec: ModelSpec, head: nn.Module | None, device: torch.device, load_format: LoadFormat) -> Pooler:
    """The poolers of the tasks of `spec`.

    Args:
        spec: of the model.
        head: hidden states to logits, for models that have one.
        device: where projections go.
        load_format: whether their weights may be pickled.

    Raises:
        ModelError: a projection can't be loaded.
    """
    if head is not None:
        return Pooler(_with_head(spec, head))
    if spec.is_bge_m3 and not spec.tokens_only:
        return Pooler(_bge_m3(spec, device, load_format))
    projection = load_projection(spec, device, load_format)
    on_tokens = spec.late_interaction is not None
    poolers: dict[PoolingTask, TaskPooler] = {}
    if "embed" in spec.tasks:
        poolers["embed"] = _embed(spec, projection)
    # What stands behind the pooling was not trained on tokens' vectors, nor were these to be cut as it is.
    is_plain = on_tokens or projection is None
    poolers["token_embed"] = TokenEmbedPooler(
        projection=projection if on_tokens else None,
        normalize=spec.normalize,
        size=spec.embedding_size if on_tokens else spec.hidden_size,
        matryoshka_dimensions=spec.matryoshka_dimensions if is_plain else None,
        dimensions=spec.dimensions if is_plain else None,
    )
    return Pooler(poolers)


def _embed(spec: ModelSpec, projection: nn.Module | None) -> EmbedPooler:
    return EmbedPooler(
        spec.pooling,
        projection=projection,
        normalize=spec.normalize,
        size=spec.embedding_size,
        matryoshka_dimensions=spec.matryoshka_dimensions,
        dimensions=spec.dimensions,
    )


def _with_head(spec: ModelSpec, head: nn.Module) -> dict[PoolingTask, TaskPooler]:
    if spec.splade is not None:
        splade = spec.splade
        return {
            "embed": SpladePooler(
                head, strategy=splade.strategy, log1p_twice=splade.log1p_twice, size=spec.embedding_size
            )
        }
    if spec.classifier is None:
        raise NotImplementedError(spec.head)
    activation = spec.classifier.activation
    if "token_classify" in spec.tasks:
        return {
            "token_classify": TokenClassifyPooler(
                head,
                activation=activation,
                use_activation=spec.use_activation,
                logit_mean=spec.logit_mean,
                logit_sigma=spec.logit_sigma,
            )
        }
    return {
        "classify": ClassifyPooler(
            spec.pooling[0],
            head,
            activation=activation,
            use_activation=spec.use_activation,
            logit_mean=spec.logit_mean,
            logit_sigma=spec.logit_sigma,
        )
    }


def _bge_m3(spec: ModelSpec, device: torch.device, load_format: LoadFormat) -> dict[PoolingTask, TaskPooler]:
    sparse, colbert = load_bge_m3_heads(spec, device, load_format)
    embed = _embed(spec, None)
    return {
        "embed": embed,
        "token_embed": BgeM3TokenPooler(projection=colbert, normalize=spec.normalize, size=colbert.out_features),
        "token_classify": TokenClassifyPooler(sparse, activation="relu"),
        "plugin": BgeM3Pooler(embed, sparse, colbert),
    }
