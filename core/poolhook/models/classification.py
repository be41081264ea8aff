"""Heads that answer with labels: their names, and the activation that makes probabilities of logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from poolhook.errors import ModelError, shorten

Activation = Literal["softmax", "sigmoid", "identity"]

_OF_PROBLEM_TYPE: dict[str, Activation] = {
    "regression": "identity",
    "single_label_classification": "softmax",
    "multi_label_classification": "sigmoid",
}
_OF_CLASS: dict[str, Activation] = {"Sigmoid": "sigmoid", "Softmax": "softmax", "Identity": "identity"}


@dataclass(frozen=True)
class Classifier:
    """A head with labels.

    Args:
        labels: their names, in the order of the logits.
        activation: makes the answer of the logits.
        tokens: for a language model that answers with words: their ids or themselves; the logits of these tokens
            after the last one are the labels'. Empty for a head of its own.
        is_difference: there is one label, the second token's logit minus the first's.
    """

    labels: tuple[str, ...]
    activation: Activation
    tokens: tuple[int | str, ...] = ()
    is_difference: bool = False


def read_labels(raw: Mapping[str, Any], id2label: Mapping[int, str]) -> tuple[str, ...]:
    """The labels' names in the order of their ids.

    Raises:
        ModelError: they are not numbered from 0 without a gap, or two have one name.
    """
    try:
        labels = {int(index): str(label) for index, label in id2label.items()}
    except (AttributeError, TypeError, ValueError):
        labels = {}
    if not labels or sorted(labels) != list(range(len(labels))):
        raise ModelError(
            f"id2label in config.json must name the labels 0 to n - 1, not {shorten(raw.get('id2label'))}."
        )
    names = tuple(labels[index] for index in range(len(labels)))
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ModelError(
            f"id2label in config.json names two labels {shorten(twice)!r}, and answers name labels. Name each of them "
            'differently, there or in hf_overrides={"id2label": {...}}.'
        )
    return names


def read_activation(raw: Mapping[str, Any], count: int, cross_encoder: str | None) -> tuple[Activation, str]:
    """The activation of a head with `count` labels, and what decided it.

    A cross-encoder's own setting wins, then `problem_type`; otherwise one label means sigmoid, several softmax. The
    softmax of a single logit is always 1, so one label is never given it.

    Args:
        raw: the object in `config.json`.
        count: labels.
        cross_encoder: the dotted name in `config_sentence_transformers.json`.

    Raises:
        ModelError: it names an activation or a problem type that poolhook does not know.
    """
    own = raw.get("sentence_transformers")
    named = own.get("activation_fn") if isinstance(own, dict) else None
    dotted = cross_encoder or named or raw.get("sbert_ce_default_activation_function")
    if dotted:
        name = str(dotted).rpartition(".")[2]
        if not str(dotted).startswith("torch.") or name not in _OF_CLASS:
            raise ModelError(
                f"The cross-encoder's activation is {shorten(dotted)!r}. Supported are {', '.join(_OF_CLASS)} of torch."
            )
        where = "config_sentence_transformers.json" if cross_encoder else "sentence_transformers in config.json"
        if _OF_CLASS[name] != "softmax" or count > 1:
            return _OF_CLASS[name], where
    problem = None if dotted else raw.get("problem_type")
    if problem is not None:
        if not isinstance(problem, str) or problem not in _OF_PROBLEM_TYPE:
            raise ModelError(
                f"problem_type in config.json is {shorten(problem)!r}. Supported: {', '.join(_OF_PROBLEM_TYPE)}."
            )
        activation = _OF_PROBLEM_TYPE[problem]
        if activation != "softmax" or count > 1:
            return activation, "problem_type in config.json"
    return ("sigmoid", "one label") if count == 1 else ("softmax", "several labels")
