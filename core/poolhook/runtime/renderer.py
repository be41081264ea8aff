"""From a `ModelSpec` to the renderer of its prompts."""

from __future__ import annotations

import logging

from poolhook.config import PoolingType
from poolhook.errors import ModelError
from poolhook.models import ModelSpec
from poolhook.render import ChatTemplates, Renderer, TextTokenizer

logger = logging.getLogger(__name__)


def build_renderer(spec: ModelSpec, chat_template: str | None = None) -> Renderer:
    """The tokenizer and the chat template of the model's directory, or the operator's, and what the spec says of them.

    Raises:
        ModelError: the tokenizer or the template can't be read.
    """
    tokenizer = TextTokenizer.from_directory(spec.transformer_path, lower_case=spec.do_lower_case)
    templates = ChatTemplates.from_directory(spec.transformer_path, chat_template)
    if _wants_pair_template(spec) and not (templates is not None and templates.takes_pairs):
        logger.warning(
            "%s (%s) scores pairs, but has no chat template with the roles 'query' and 'document': the two texts are "
            "simply put together, and a model that was trained with a template then ranks badly. If it was, give the "
            "template, with chat_template or --chat-template.",
            spec.name,
            spec.architecture,
        )
    if spec.messages is not None and templates is None:
        raise ModelError(
            f"{spec.name} makes a chat of each text (modality_config in its sentence_bert_config.json), but has no "
            "chat template. Give one, with chat_template or --chat-template."
        )
    return Renderer(
        tokenizer,
        spec.max_length,
        spec.truncation_side,
        roles=spec.late_interaction,
        include_prompt=spec.include_prompt,
        step_tag_id=spec.step_tag_id,
        templates=templates,
        messages=spec.messages,
        add_generation_prompt=spec.add_generation_prompt,
        chunked=spec.is_chunked,
        max_embed_len=spec.max_embed_len,
    )


def _wants_pair_template(spec: ModelSpec) -> bool:
    """Whether it is a language model that scores pairs; encoders have separators of their own."""
    is_scorer = spec.tasks == ("classify",) and spec.classifier is not None and len(spec.classifier.labels) == 1
    return is_scorer and (spec.head == "causal_lm" or spec.pooling == (PoolingType.LAST,))
