"""Two texts that the model reads together, put together by the tokenizer: cross-encoders' query and document."""

from __future__ import annotations

from collections.abc import Mapping

from poolhook.errors import InvalidRequest
from poolhook.render.encoded import Encoded
from poolhook.render.limits import Cutting
from poolhook.render.prompts import PairPrompt
from poolhook.render.tokenizer import TextTokenizer


def encode_pairs(
    tokenizer: TextTokenizer,
    pairs: Mapping[int, PairPrompt],
    cutting: Cutting,
    *,
    add_special_tokens: bool,
) -> list[Encoded]:
    """Tokenize pairs; a query that many of them share is tokenized once.

    Args:
        tokenizer: the model's.
        pairs: by the position of their prompt.
        cutting: how long a pair may be; of what is longer the document alone is cut.
        add_special_tokens: put the model's special tokens around and between the texts.

    Raises:
        InvalidRequest: a pair is too long, even with an empty document where documents are cut.
    """
    frame = tokenizer.pair_frame(add_special_tokens=add_special_tokens)
    keep, limit, side = cutting.keep, cutting.limit, cutting.side
    most = keep or limit.tokens
    first_with = {pair.text: index for index, pair in reversed(list(pairs.items()))}
    for query, index in first_with.items():
        if most is not None and tokenizer.exceeds(query, most):
            raise _query_too_long(index, f"more than {most}", frame.size, most)
    encoded = tokenizer.tokenize(list(first_with), [None] * len(first_with), side)
    queries = dict(zip(first_with, (query.ids for query in encoded), strict=True))
    rooms: list[int | None] = []
    for index, pair in pairs.items():
        room = None if keep is None else keep - frame.size - len(queries[pair.text])
        if room is not None and room < 0 and keep is not None:
            raise _query_too_long(index, f"{len(queries[pair.text])}", frame.size, keep)
        if room is None and limit.tokens is not None and tokenizer.exceeds(pair.text_pair, limit.tokens):
            raise limit.exceeded(index, f"more than {limit.tokens}")
        rooms.append(room)
    documents = tokenizer.tokenize([pair.text_pair for pair in pairs.values()], rooms, side)
    return [
        Encoded(frame.around(query, document.ids), frame.type_ids(len(query), len(document.ids)))
        for query, document in zip((queries[pair.text] for pair in pairs.values()), documents, strict=True)
    ]


def _query_too_long(index: int, length: str, specials: int, keep: int) -> InvalidRequest:
    return InvalidRequest(
        f"Prompt {index} has a query of {length} tokens, which with {specials} special tokens is more than {keep}. "
        "Truncation cuts the document only; shorten the query.",
        param="input",
    )
