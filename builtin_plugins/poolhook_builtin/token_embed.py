"""Task `token_embed`: a vector for each token of a prompt."""

from __future__ import annotations

from poolhook_builtin.embed import EmbedIOProcessor


class TokenEmbedIOProcessor(EmbedIOProcessor):
    """Prompts in, a vector for each token out.

    A late-interaction model has two kinds of texts: `prompt_name` says which, `query` or `document`.
    """
