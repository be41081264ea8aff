"""`Limit`: how long a prompt may be, who says so, and what a request for truncation makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from poolhook.errors import InvalidRequest, shorten
from poolhook.render.windows import Side


@dataclass(frozen=True, slots=True)
class Limit:
    """The longest prompt, in tokens, with everything that is put around it.

    Args:
        tokens: None for no limit.
        whose: who takes at most so many, for messages.
        cut_to: what truncation to -1 cuts to.
    """

    tokens: int | None
    whose: str
    cut_to: int

    def cutting(self, wanted: int | None, side: Side) -> Cutting:
        """What `truncate_prompt_tokens=wanted` makes of it."""
        if wanted is None:
            return Cutting(self, None, side)
        if wanted == -1:
            return Cutting(self, self.cut_to, side)
        return Cutting(self, wanted if self.tokens is None else min(wanted, self.tokens), side)

    def exceeded(self, index: int, length: str) -> InvalidRequest:
        """What to tell the sender of a prompt of this many tokens."""
        return InvalidRequest(
            f"Prompt {index} has {length} tokens; {self.whose} at most {self.tokens}. "
            f"Shorten it, or set truncate_prompt_tokens to -1 to cut it to {self._remedy}.",
            param="input",
        )

    @property
    def _remedy(self) -> str:
        return "that length" if self.cut_to == self.tokens else f"{self.cut_to}"


@dataclass(frozen=True, slots=True)
class Cutting:
    """What a request makes of a limit.

    Args:
        limit: the longest prompt.
        keep: cut prompts to this many tokens; None refuses those beyond the limit.
        side: the end that is cut away.
    """

    limit: Limit
    keep: int | None
    side: Side


def check_wanted(wanted: int | None, longest: Limit) -> None:
    """Refuse truncation to a length that no prompt may have.

    Args:
        wanted: `truncate_prompt_tokens` of a request.
        longest: the widest limit of any prompt.

    Raises:
        InvalidRequest: with what is allowed.
    """
    if wanted is None or wanted == -1 or (wanted >= 1 and (longest.tokens is None or wanted <= longest.tokens)):
        return
    if longest.tokens == longest.cut_to:
        allowed = f"1 to {longest.tokens}, this model's maximum, or -1 for that maximum"
    else:
        most = "1 or more" if longest.tokens is None else f"1 to {longest.tokens}"
        allowed = f"{most}, or -1 for the {longest.cut_to} that the model takes at once"
    raise InvalidRequest(
        f"truncate_prompt_tokens is {shorten(wanted)}; give {allowed}.", param="truncate_prompt_tokens"
    )
