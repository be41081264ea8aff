"""Single texts: instruction, prefix, special tokens, and which of the tokens are the instruction's."""

from __future__ import annotations

from collections.abc import Mapping

from poolhook.errors import InvalidRequest
from poolhook.render.encoded import Encoded
from poolhook.render.frame import Frame
from poolhook.render.limits import Cutting
from poolhook.render.prompts import TextPrompt
from poolhook.render.roles import Treatment
from poolhook.render.tokenizer import TextTokenizer, Tokenized


def encode_texts(
    tokenizer: TextTokenizer,
    prompts: Mapping[int, TextPrompt],
    treatment: Treatment,
    cutting: Cutting,
    *,
    add_special_tokens: bool,
    count_instructions: bool,
) -> list[Encoded]:
    """Tokenize texts of one role.

    Args:
        tokenizer: the model's.
        prompts: by their position.
        treatment: what their role does to them.
        cutting: how long they may be and what is cut.
        add_special_tokens: put the model's special tokens around each.
        count_instructions: find out which tokens are those of an instruction.

    Raises:
        InvalidRequest: a text is far too long, or truncation leaves no room for the special tokens.
    """
    frame = treatment.frame(tokenizer.frame(add_special_tokens=add_special_tokens))
    keep, limit = cutting.keep, cutting.limit
    if keep is not None and keep < max(frame.size, 1):
        raise InvalidRequest(
            f"truncate_prompt_tokens is {keep}, but the special tokens alone are {frame.size}. Give a larger number.",
            param="truncate_prompt_tokens",
        )
    texts = [treatment.prefix + prompt.instruction + prompt.text for prompt in prompts.values()]
    if keep is None and limit.tokens is not None:
        for index, text in zip(prompts, texts, strict=True):
            if tokenizer.exceeds(text, limit.tokens):
                raise limit.exceeded(index, f"more than {limit.tokens}")
    room = None if keep is None else keep - frame.size
    tokenized = tokenizer.tokenize(texts, [room] * len(texts), cutting.side)
    instructions = {prompt.instruction for prompt in prompts.values() if count_instructions and prompt.instruction}
    lengths = {text: _instruction_length(tokenizer, frame, treatment.prefix + text) for text in instructions}
    return [
        Encoded(
            frame.around(tokens.ids),
            frame.type_ids(len(tokens.ids)),
            _left_of(lengths[prompt.instruction], len(treatment.prefix + prompt.instruction), tokens, frame)
            if prompt.instruction in lengths
            else 0,
        )
        for prompt, tokens in zip(prompts.values(), tokenized, strict=True)
    ]


def _instruction_length(tokenizer: TextTokenizer, frame: Frame, instruction: str) -> int:
    """How many of a text's first tokens are those of its instruction, as sentence-transformers counts them.

    That is the instruction alone with special tokens, without a special token at its end.
    """
    (tokens,) = tokenizer.tokenize([instruction], [None], "right")
    ids = frame.around(tokens.ids)
    ends_specially = bool(ids) and (bool(frame.specials[-1]) or tokenizer.is_special(ids[-1]))
    return len(ids) - ends_specially


def _left_of(length: int, characters: int, tokens: Tokenized, frame: Frame) -> int:
    """How many of an instruction's `length` tokens are there after a cut from the left."""
    if not tokens.dropped and not tokens.unread:
        return length
    before = len(frame.specials[0])
    return before if tokens.unread >= characters else max(before, length - tokens.dropped)
