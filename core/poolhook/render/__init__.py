"""Text to token ids: prompts, tokenizers, truncation."""

from poolhook.render.chunks import Chunks
from poolhook.render.prompts import ChatPrompt, PairPrompt, Prompt, TextPrompt, TokensPrompt, as_prompts
from poolhook.render.renderer import Renderer
from poolhook.render.templates import ChatTemplates
from poolhook.render.tokenizer import TextTokenizer

__all__ = [
    "ChatPrompt",
    "ChatTemplates",
    "Chunks",
    "PairPrompt",
    "Prompt",
    "Renderer",
    "TextPrompt",
    "TextTokenizer",
    "TokensPrompt",
    "as_prompts",
]
