"""A model's head apart from its transformer, so that the transformer can run over packed batches.

The head runs as transformers wrote it: its model stays whole but for the transformer inside it, in whose place stands
something that hands out given hidden states. No family's head is written again here; the load-time proof compares.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

from poolhook.config import LoadFormat
from poolhook.errors import ModelError
from poolhook.models.classification import Classifier
from poolhook.models.projection import linear_of
from poolhook.models.spec import ModelSpec
from poolhook.models.weights import read_tensors

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TransformerHead(nn.Module):
    """What a model of transformers does behind its transformer. Computes in float32.

    Args:
        model: as loaded; taken over, and without its transformer afterwards.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        transformer = model.base_model
        self._given = _GivenHiddenStates(transformer)
        setattr(model, model.base_model_prefix, self._given)
        # A copy, since weights may be shared with the transformer, whose dtype and configuration must stay.
        self._model = copy.deepcopy(model).float() if model.dtype != torch.float32 else model
        self._given = getattr(self._model, model.base_model_prefix)
        self._model.config = copy.deepcopy(model.config)
        # Heads of decoders look for the last token that is no padding; the one that they are given never is.
        self._model.config.get_text_config().pad_token_id = -1

    def forward(self, rows: Tensor) -> Tensor:
        """Hidden states, shape `[n, hidden]`, to logits, shape `[n, labels]`, float32."""
        self._given.hidden = rows.float()[:, None]
        ids = torch.zeros(len(rows), 1, dtype=torch.long, device=rows.device)
        try:
            logits: Tensor = self._model(input_ids=ids).logits
        finally:
            self._given.hidden = None
        return logits.flatten(1)


class _GivenHiddenStates(nn.Module):
    """Stands in for a transformer: whatever it is called with, it answers with the hidden states it was given."""

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        # BERT and its kin pool within the transformer what their head reads.
        self.pooler = getattr(transformer, "pooler", None)
        self.pooler_activation = getattr(transformer, "pooler_activation", None)  # ALBERT's
        self.hidden: Tensor | None = None

    @property
    def decoder(self) -> _GivenHiddenStates:
        """What OPT's language model calls instead of the transformer around it."""
        return self

    def forward(self, *_: Any, **__: Any) -> _GivenOutput:
        hidden, pooled = self.hidden, None
        if isinstance(self.pooler, nn.Linear) and hidden is not None:
            pooled = self.pooler(hidden[:, 0])
            pooled = self.pooler_activation(pooled) if self.pooler_activation is not None else pooled
        elif self.pooler is not None:
            pooled = self.pooler(hidden)
        return _GivenOutput(last_hidden_state=hidden, pooler_output=pooled)


class _GivenOutput(BaseModelOutputWithPoolingAndCrossAttentions):  # type: ignore[misc]
    """Has nothing but hidden states: what heads hand on besides (XLNet's memories, the router of experts) is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class Difference(nn.Module):
    """The second logit minus the first: the log-odds of a true answer against a false one.

    Args:
        head: gives two logits.
    """

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self._head = head

    def forward(self, rows: Tensor) -> Tensor:
        """Shape `[n, hidden]` to `[n, 1]`."""
        logits: Tensor = self._head(rows)
        return logits[:, 1:] - logits[:, :1]


def split_head(model: PreTrainedModel) -> tuple[PreTrainedModel, nn.Module]:
    """The transformer of `model`, and its head.

    Raises:
        ModelError: they can't be told apart.
    """
    transformer = model.base_model
    if transformer is model:
        raise ModelError(f"The head of {type(model).__name__} can't be told from its transformer.")
    return transformer, TransformerHead(model)


def keep_answer_tokens(model: PreTrainedModel, spec: ModelSpec, classifier: Classifier) -> None:
    """Leave of a language model's head only the rows of the tokens that are the labels.

    Raises:
        ModelError: a token is not in the vocabulary, or the model has no output embeddings.
    """
    output = model.get_output_embeddings()
    if not isinstance(output, nn.Linear):
        raise ModelError(f"{spec.architecture} has no output embeddings to read the logits of tokens from.")
    ids = token_ids(spec, classifier.tokens)
    kept = nn.Linear(output.in_features, len(ids), bias=output.bias is not None)
    kept.weight = nn.Parameter(output.weight[ids].clone(), requires_grad=False)
    if output.bias is not None:
        kept.bias = nn.Parameter(output.bias[ids].clone(), requires_grad=False)
    model.set_output_embeddings(kept)


def token_ids(spec: ModelSpec, tokens: Sequence[int | str]) -> list[int]:
    """The ids of tokens that may be given by name.

    Raises:
        ModelError: a name is no token, or an id is beyond the vocabulary.
    """
    names = [token for token in tokens if isinstance(token, str)]
    known: dict[str, int] = {}
    if names:
        from transformers import AutoTokenizer

        vocabulary = AutoTokenizer.from_pretrained(spec.transformer_path, local_files_only=True).get_vocab()
        known = {name: vocabulary[name] for name in names if name in vocabulary}
    ids = [known.get(token, -1) if isinstance(token, str) else token for token in tokens]
    for token, found in zip(tokens, ids, strict=True):
        if not 0 <= found < spec.vocab_size:
            raise ModelError(f"{token!r} is no token of {spec.name}, whose classifier answers with it.")
    return ids


def load_reward_head(spec: ModelSpec, device: torch.device, load_format: LoadFormat) -> nn.Module:
    """The head of a reward model, which transformers has no class for: `score`, a linear layer or two with a ReLU.

    Raises:
        ModelError: its weights are missing or have another number of labels.
    """
    stem = "" if load_format == "safetensors" else "pytorch_model"
    tensors = read_tensors(spec.transformer_path, stem, "score.", load_format)
    if "weight" in tensors:
        layers: list[nn.Module] = [linear_of(tensors, spec.transformer_path / "score")]
    else:
        places = sorted({name.partition(".")[0] for name in tensors})
        layers = []
        for place in places:
            inner = {name.partition(".")[2]: tensor for name, tensor in tensors.items() if name.startswith(f"{place}.")}
            layers += [linear_of(inner, spec.transformer_path / f"score.{place}"), nn.ReLU()]
        layers = layers[:-1]
    labels = spec.classifier.labels if spec.classifier else ()
    last = layers[-1] if layers else None
    if not isinstance(last, nn.Linear) or last.out_features != len(labels):
        count = last.out_features if isinstance(last, nn.Linear) else 0
        raise ModelError(f"The reward head of {spec.name} gives {count} logits, not {len(labels)}.")
    return nn.Sequential(*layers).to(device).eval().requires_grad_(False)
