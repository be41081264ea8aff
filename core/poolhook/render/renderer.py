"""`Renderer`: prompts of one request to engine inputs, with the limits of the model applied to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest
from poolhook.models.late_interaction import LateInteraction, Role
from poolhook.models.sentence_transformers import MessageFormat
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render.chunks import Chunks, split
from poolhook.render.encoded import Encoded
from poolhook.render.limits import Cutting, Limit, check_wanted
from poolhook.render.pairs import encode_pairs
from poolhook.render.pooled import PoolingRule
from poolhook.render.prompts import ChatPrompt, PairPrompt, Prompt, TextPrompt, TokensPrompt
from poolhook.render.roles import Treatment, treatments
from poolhook.render.templated import Templated, as_chat, encode_templated, from_chat, from_pair
from poolhook.render.templates import ChatTemplates
from poolhook.render.texts import encode_texts
from poolhook.render.tokenizer import TextTokenizer
from poolhook.render.unicode import check_prompt
from poolhook.render.windows import Side


class Renderer:
    """Turns prompts into engine inputs; shared by all threads.

    Args:
        tokenizer: None if the model directory has none; then only token ids are served.
        max_length: the longest sequence that the model takes, in tokens, special tokens included.
        truncation_side: the end that is cut away where a request does not say.
        roles: what makes queries and documents of a late-interaction model; None for others.
        include_prompt: False leaves the tokens of instructions out of pooling, for tasks that answer with one row.
        step_tag_id: for tasks that answer with a row for each token, pool only the tokens with this id.
        templates: the model's chat template. If it takes pairs, it makes the text of each.
        messages: how texts are made chats of, where the model's template is for those too; None for plain texts.
        add_generation_prompt: end what the template makes with what starts an answer.
        chunked: let prompts for task `embed` be longer than the model takes, to be cut by `split`.
        max_embed_len: the longest of those, in tokens; None for no limit.

    Raises:
        ModelError: the tokenizer lacks what a late-interaction model's roles need.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer | None,
        max_length: int,
        truncation_side: Side = "right",
        *,
        roles: LateInteraction | None = None,
        include_prompt: bool = True,
        step_tag_id: int | None = None,
        templates: ChatTemplates | None = None,
        messages: MessageFormat | None = None,
        add_generation_prompt: bool = False,
        chunked: bool = False,
        max_embed_len: int | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._side: Side = truncation_side
        self._rule = PoolingRule(include_prompt, step_tag_id)
        self._templates = templates
        self._messages = messages
        self._ends_open = add_generation_prompt
        self._treatments = treatments(roles, tokenizer, max_length)
        self._limit = self._embed_limit = Limit(max_length, "this model takes", max_length)
        # Roles set limits of their own, and their models answer with a vector for each token.
        self._chunked = chunked and roles is None
        if self._chunked:
            cut_to = max_length if max_embed_len is None else min(max_length, max_embed_len)
            self._embed_limit = Limit(max_embed_len, "max_embed_len allows", cut_to)

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
            prompts: of all kinds, mixed as they come.
            params: one for each prompt.
            tokenization: for all of them. `truncate_prompt_tokens` beyond a prompt's own limit means that limit;
                `add_special_tokens` does not reach what comes out of a template.
            priority: see `EngineInput`.
            deadline: see `EngineInput`.

        Raises:
            InvalidRequest: a prompt is longer than the model takes and truncation was not asked for, or cutting what
                may be cut does not make it fit; it is no valid Unicode, or nothing is left of it to pool; the model
                lacks the tokenizer or the chat template that it needs, or its template refuses it.
        """
        check_wanted(tokenization.truncate_prompt_tokens, self._embed_limit)
        side = tokenization.truncation_side or self._side
        cuttings = [
            self._limit_of(prompt, each).cutting(tokenization.truncate_prompt_tokens, side)
            for prompt, each in zip(prompts, params, strict=True)
        ]
        encoded = self._encode(prompts, cuttings, tokenization.add_special_tokens)
        inputs = []
        for index, (prompt, each) in enumerate(zip(prompts, params, strict=True)):
            length, limit = len(encoded[index].ids), cuttings[index].limit
            if limit.tokens is not None and length > limit.tokens:
                raise limit.exceeded(index, f"{length}")
            inputs.append(self._input(index, encoded[index], each, self._treatment_of(prompt), priority, deadline))
        return inputs

    def split(self, inputs: Sequence[EngineInput]) -> Chunks:
        """Engine inputs that the model can take, for rendered prompts of which some may be longer."""
        frame = self._tokenizer.frame(add_special_tokens=True) if self._tokenizer else None
        return split(inputs, self._max_length, frame)

    def _treatment_of(self, prompt: Prompt) -> Treatment:
        return self._treatments[prompt.role if isinstance(prompt, TextPrompt | TokensPrompt) else None]

    def _limit_of(self, prompt: Prompt, params: PoolingParams) -> Limit:
        if not isinstance(prompt, TextPrompt | TokensPrompt):
            return self._limit
        if self._chunked and params.task == "embed":
            return self._embed_limit
        return self._treatments[prompt.role].limit

    def _encode(
        self, prompts: Sequence[Prompt], cuttings: Sequence[Cutting], add_special_tokens: bool
    ) -> Sequence[Encoded]:
        """Encode prompts in groups of those that are treated alike."""
        encoded: dict[int, Encoded] = {}
        texts: dict[tuple[Role | None, Cutting], dict[int, TextPrompt]] = {}
        pairs: dict[int, PairPrompt] = {}
        templated: list[Templated] = []
        pair_templates = self._templates if self._templates and self._templates.takes_pairs else None
        for index, (prompt, cutting) in enumerate(zip(prompts, cuttings, strict=True)):
            check_prompt(index, prompt)
            if isinstance(prompt, TokensPrompt):
                encoded[index] = Encoded(_cut(prompt.token_ids, cutting))
            elif isinstance(prompt, TextPrompt) and self._messages is None:
                texts.setdefault((prompt.role, cutting), {})[index] = prompt
            elif isinstance(prompt, TextPrompt | ChatPrompt):
                chat = prompt if isinstance(prompt, ChatPrompt) else as_chat(prompt, self._messages or "flat")
                templates = self._chat_templates(index)
                templated.append(from_chat(index, chat, templates, add_generation_prompt=self._ends_open))
            elif pair_templates:
                pair = from_pair(index, prompt, pair_templates, add_generation_prompt=self._ends_open)
                templated.append(pair)
            else:
                pairs[index] = replace(prompt, text=prompt.instruction + prompt.text)
        if len(encoded) == len(prompts):
            return [encoded[index] for index in range(len(prompts))]
        if self._tokenizer is None:
            raise InvalidRequest(
                "This model's directory has no tokenizer; send token ids instead of text.", param="input"
            )
        for (role, cutting), group in texts.items():
            treatment = self._treatments[role]
            rows = encode_texts(
                self._tokenizer,
                group,
                treatment,
                cutting,
                add_special_tokens=add_special_tokens,
                count_instructions=not self._rule.include_prompt,
            )
            encoded |= zip(group, rows, strict=True)
        if pairs:
            cutting = cuttings[next(iter(pairs))]
            rows = encode_pairs(self._tokenizer, pairs, cutting, add_special_tokens=add_special_tokens)
            encoded |= zip(pairs, rows, strict=True)
        if templated:
            rows = encode_templated(self._tokenizer, templated, cuttings[templated[0].index])
            encoded |= zip((text.index for text in templated), rows, strict=True)
        return [encoded[index] for index in range(len(prompts))]

    def _chat_templates(self, index: int) -> ChatTemplates:
        if self._templates is None:
            raise InvalidRequest(
                f"Prompt {index} is a chat, but this model has no chat template. Send a text, or start with a chat "
                "template.",
                param="input",
            )
        return self._templates

    def _input(
        self,
        index: int,
        encoded: Encoded,
        params: PoolingParams,
        treatment: Treatment,
        priority: int,
        deadline: float | None,
    ) -> EngineInput:
        ids, type_ids = treatment.expand(encoded.ids), encoded.type_ids
        expansion = len(ids) - len(encoded.ids)
        return EngineInput(
            ids,
            params,
            [*type_ids, *[0] * expansion] if type_ids and expansion else type_ids,
            priority,
            deadline,
            self._rule.pooled(index, ids, encoded.unpooled, treatment.skip_ids, params.task),
            len(encoded.ids) if expansion and not treatment.attend_to_expansion else None,
        )


def _cut(token_ids: Sequence[int], cutting: Cutting) -> Sequence[int]:
    keep = cutting.keep
    if keep is None or len(token_ids) <= keep:
        return token_ids
    return token_ids[:keep] if cutting.side == "right" else token_ids[len(token_ids) - keep :]
