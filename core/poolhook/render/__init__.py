"""Text to token ids: prompts, tokenizers, truncation."""

from poolhook.render.prompts import Prompt, TextPrompt, TokensPrompt, as_prompts
from poolhook.render.renderer import Renderer
from poolhook.render.tokenizer import TextTokenizer

__all__ = ["Prompt", "Renderer", "TextPrompt", "TextTokenizer", "TokensPrompt", "as_prompts"]
