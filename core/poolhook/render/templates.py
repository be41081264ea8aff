"""`ChatTemplates`: the Jinja templates that make one text of a chat, or of a query and its document.

Rendered by transformers' own sandbox, so that a template means here what it means there. A pair is a chat of two
messages with the roles `query` and `document`: the convention of sentence-transformers and vLLM for rerankers that are
language models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from poolhook.errors import ConfigError, InvalidRequest, ModelError, describe_error, shorten
from poolhook.models.files import read_optional_json

_DEFAULT = "default"
_PAIR = ("query", "document")
_SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class ChatTemplates:
    """A chat template and what it needs; shared by all threads.

    Args:
        template: Jinja source.
        special_tokens: variables that templates may use, such as `bos_token`.
        is_given: the operator gave it, and so means it for whatever it can render.
    """

    def __init__(
        self, template: str, special_tokens: Mapping[str, str] | None = None, *, is_given: bool = False
    ) -> None:
        self._template = template
        self._is_given = is_given
        self._special_tokens = dict(special_tokens or {})

    @classmethod
    def from_directory(cls, path: Path, given: str | None = None) -> ChatTemplates | None:
        """The template of the model in `path`, or the one that the operator gives instead.

        None if there is none, or several of which none is the default.

        Args:
            path: the directory with the tokenizer's files.
            given: the name of one of the model's templates, the path of a file, or a template.

        Raises:
            ConfigError: `given` is none of these, or is no valid template.
            ModelError: a file of the model can't be read.
        """
        config = read_optional_json(path / "tokenizer_config.json")
        templates = _templates(path, config)
        special_tokens = _special_tokens({**read_optional_json(path / "special_tokens_map.json"), **config})
        if given is not None:
            made = cls(templates.get(given) or _read_given(given, templates), special_tokens, is_given=True)
            made._check_syntax()
            return made
        return cls(templates[_DEFAULT], special_tokens) if _DEFAULT in templates else None

    def render(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = False) -> str:
        """A chat as one text, special tokens included.

        Raises:
            InvalidRequest: the template refuses these messages or can't be rendered with them.
        """
        from transformers.utils.chat_template_utils import render_jinja_template

        try:
            (text,), _ = render_jinja_template(
                conversations=[list(map(dict, messages))],
                chat_template=self._template,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
            )
        except Exception as error:
            # Templates raise what Jinja and Python raise, and refuse messages in their own words.
            raise InvalidRequest(
                f"The model's chat template can't take these messages: {describe_error(error)}. "
                "Send messages of the roles and in the order that the template expects, or a text instead.",
                param="input",
            ) from error
        return str(text)

    def render_pair(
        self, query: str, document: str, *, instruction: str = "", add_generation_prompt: bool = False
    ) -> str:
        """A query and its document as one text, special tokens included; for templates that take pairs."""
        system = [{"role": "system", "content": instruction}] if instruction else []
        return self.render(
            [*system, {"role": "query", "content": query}, {"role": "document", "content": document}],
            add_generation_prompt=add_generation_prompt,
        )

    def _check_syntax(self) -> None:
        """Refuse at start what would fail at every request."""
        from jinja2 import TemplateSyntaxError

        try:
            self.render([{"role": "user", "content": ""}])
        except InvalidRequest as error:
            if isinstance(error.__cause__, TemplateSyntaxError):
                raise ConfigError(f"The chat template is not valid: {describe_error(error.__cause__)}") from error

    @cached_property
    def takes_pairs(self) -> bool:
        """Whether a query and a document both come out of the template, each once.

        A model's own template must also name the two roles. One for chats takes any role and knows nothing of these:
        what a reranker that was trained on something else makes of such a text is nonsense.
        """
        if not self._is_given and not all(role in self._template for role in _PAIR):
            return False
        query, document = "the query 7d1f", "the document 3b9e"
        try:
            text = self.render_pair(query, document)
        except InvalidRequest:
            return False
        return text.count(query) == 1 == text.count(document)


def _templates(path: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """A model's templates by name. As in transformers, those in files of their own hide those in the configuration."""
    files = {_DEFAULT: path / "chat_template.jinja"}
    files |= {file.stem: file for file in sorted((path / "additional_chat_templates").glob("*.jinja"))}
    try:
        in_files = {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.is_file()}
    except (OSError, ValueError) as error:
        raise ModelError(f"The chat templates in {path} can't be read: {describe_error(error)}") from error
    if in_files:
        return in_files
    match config.get("chat_template"):
        case str(template):
            return {_DEFAULT: template}
        case list(named):
            return {str(entry["name"]): str(entry["template"]) for entry in named if _is_named(entry)}
    return {}


def _is_named(entry: Any) -> bool:
    return isinstance(entry, Mapping) and {"name", "template"} <= set(entry)


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    tokens = {}
    for name in _SPECIAL_TOKENS:
        token = config.get(name)
        text = token.get("content") if isinstance(token, Mapping) else token
        if isinstance(text, str):
            tokens[name] = text
    return tokens


def _read_given(given: str, templates: Mapping[str, str]) -> str:
    if "{" in given or "\n" in given:
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The chat template {shorten(given)} is no template and no readable file, and the model has none of that "
            f"name (it has {', '.join(sorted(templates)) or 'none'}): {describe_error(error)}"
        ) from error
