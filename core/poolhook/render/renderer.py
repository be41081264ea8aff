"""`Renderer`: prompts of one request to engine inputs, with the limits of the model applied to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest, shorten
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render.prompts import Prompt, TextPrompt
from poolhook.render.tokenizer import Encoded, Side, TextTokenizer


class Renderer:
    """Turns prompts into engine inputs; shared by all threads.

    Args:
        tokenizer: None if the model directory has none; then only token ids are served.
        max_length: the longest prompt, in tokens, special tokens included.
        truncation_side: the end that is cut away where a request does not say.
    """

    def __init__(self, tokenizer: TextTokenizer | None, max_length: int, truncation_side: Side = "right") -> None:
        self._truncation_side = truncation_side
        self._tokenizer = tokenizer
        self._max_length = max_length

    def render(
        self,
        prompts: Sequence[Prompt],
        params: Sequence[PoolingParams],
        tokenization: TokenizationParams,
        *,
        priority: int = 0,
        deadline: float | None = None,
    ) -> list[EngineInput]:
        """Tokenize texts, cut what is to be cut, refuse what is too long.

        Args:
            prompts: texts and token ids, mixed as they come.
            params: one for each prompt.
            tokenization: for all of them.
            priority: see `EngineInput`.
            deadline: see `EngineInput`.

        Raises:
            InvalidRequest: a prompt is longer than the model takes and truncation was not asked for, or it is no valid
                Unicode, or it is a text and the model has no tokenizer.
        """
        keep = self._keep(tokenization)
        texts = {index: prompt.text for index, prompt in enumerate(prompts) if isinstance(prompt, TextPrompt)}
        encoded_texts = iter(self._encode(texts, tokenization, keep))
        inputs = []
        for index, (prompt, wanted) in enumerate(zip(prompts, params, strict=True)):
            if isinstance(prompt, TextPrompt):
                encoded = next(encoded_texts)
            else:
                encoded = Encoded(
                    _cut(prompt.token_ids, keep, tokenization.truncation_side or self._truncation_side), None
                )
            if len(encoded.ids) > self._max_length:
                raise self._too_long(index, f"{len(encoded.ids)}")
            inputs.append(EngineInput(encoded.ids, wanted, encoded.type_ids, priority, deadline))
        return inputs

    def _keep(self, tokenization: TokenizationParams) -> int | None:
        wanted = tokenization.truncate_prompt_tokens
        if wanted == -1:
            return self._max_length
        if wanted is not None and not 1 <= wanted <= self._max_length:
            raise InvalidRequest(
                f"truncate_prompt_tokens is {shorten(wanted)}; give 1 to {self._max_length}, this model's maximum, "
                "or -1 for that maximum.",
                param="truncate_prompt_tokens",
            )
        return wanted

    def _encode(self, texts: Mapping[int, str], tokenization: TokenizationParams, keep: int | None) -> list[Encoded]:
        """Encode texts, given by the position of their prompt."""
        if not texts:
            return []
        if self._tokenizer is None:
            raise InvalidRequest(
                "This model's directory has no tokenizer; send token ids instead of text.", param="input"
            )
        for index, text in texts.items():
            _check_unicode(index, text)
            if keep is None and self._tokenizer.exceeds(text, self._max_length):
                raise self._too_long(index, f"more than {self._max_length}")
        return self._tokenizer.encode(
            list(texts.values()),
            add_special_tokens=tokenization.add_special_tokens,
            keep=keep,
            side=tokenization.truncation_side or self._truncation_side,
        )

    def _too_long(self, index: int, length: str) -> InvalidRequest:
        return InvalidRequest(
            f"Prompt {index} has {length} tokens; this model takes at most {self._max_length}. "
            "Shorten it, or set truncate_prompt_tokens to -1 to cut it to that length.",
            param="input",
        )


def _check_unicode(index: int, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"Prompt {index} is no valid Unicode: it has a lone surrogate at position {error.start}.", param="input"
        ) from error


def _cut(token_ids: Sequence[int], keep: int | None, side: str) -> Sequence[int]:
    if keep is None or len(token_ids) <= keep:
        return token_ids
    return token_ids[:keep] if side == "right" else token_ids[len(token_ids) - keep :]
