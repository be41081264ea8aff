"""Which tokens of a prompt the pooler reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poolhook.errors import InvalidRequest
from poolhook.tasks import PoolingTask

_TOKEN_TASKS = ("token_embed", "token_classify")


@dataclass(frozen=True)
class PoolingRule:
    """What a model says of it.

    Args:
        include_prompt: False leaves out instructions, for tasks that answer with one row.
        step_tag_id: for tasks that answer with a row for each token, only tokens with this id are read.
    """

    include_prompt: bool
    step_tag_id: int | None

    def pooled(
        self, index: int, ids: Sequence[int], unpooled: int, skip_ids: frozenset[int], task: PoolingTask | None
    ) -> list[bool] | None:
        """For each token whether it is read; None for all.

        Args:
            index: the position of the prompt.
            ids: what the model sees of it.
            unpooled: how many of them, from the first, belong to an instruction.
            skip_ids: tokens that a late-interaction model leaves out.
            task: what is computed.

        Raises:
            InvalidRequest: the task answers with one row, and nothing is left to make it from.
        """
        of_tokens = task in _TOKEN_TASKS
        rules: list[Iterable[bool]] = []
        if of_tokens and self.step_tag_id is not None:
            rules.append(token == self.step_tag_id for token in ids)
        if unpooled and not of_tokens and not self.include_prompt:
            rules.append(place >= unpooled for place in range(len(ids)))
        if skip_ids:
            rules.append(token not in skip_ids for token in ids)
        if not rules:
            return None
        pooled = list(map(all, zip(*rules, strict=True)))
        if not of_tokens and not any(pooled):
            raise InvalidRequest(
                f"Nothing is left of prompt {index} to pool: all of its {len(ids)} tokens belong to its instruction "
                "or are words that this model leaves out. Cut it less, or send more text.",
                param="input",
            )
        return pooled
