"""Specifies prompts that go through a chat template: what the model sees, and that only what they carry is cut."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render import ChatPrompt, ChatTemplates, PairPrompt, Prompt, Renderer, TextPrompt, TextTokenizer

PAIRS = ChatTemplates(
    "{% set q = messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first %}"
    "{% set d = messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first %}"
    "<start>Query: {{ q }}<end>Document: {{ d }}<end><start>yes or no?"
)
CHATS = ChatTemplates(
    "{% for m in messages %}<start>{{ m.role }}\n"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}"
    "<end>{% endfor %}{% if add_generation_prompt %}<start>assistant\n{% endif %}"
)
WORDS = st.lists(
    st.sampled_from(["the", "quick", "fox's", "über", "日本語", "🙂", "12345", "\n", "<end>"]), max_size=30
)
KINDS = ["bytes", "pieces", "demo"]
SIDES = ["left", "right"]
relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="session")
def backend_of(tokenizer_pair: Callable[[str], Any]) -> Callable[[str], Tokenizer]:
    """`backend_of(kind)`: a tokenizer that knows the template's special tokens."""

    @cache
    def make(kind: str) -> Tokenizer:
        backend = Tokenizer.from_str(tokenizer_pair(kind).theirs.backend_tokenizer.to_str())
        backend.no_truncation()
        backend.no_padding()
        backend.add_special_tokens(["<start>", "<end>"])
        return backend

    return make


@cache
def tokenizer_of(backend: Tokenizer) -> TextTokenizer:
    return TextTokenizer(backend)


def render(renderer: Renderer, *prompts: Prompt, **tokenization: Any) -> list[EngineInput]:
    params = [PoolingParams(task="classify")] * len(prompts)
    return renderer.render(prompts, params, TokenizationParams(**tokenization))


def ids(renderer: Renderer, prompt: Prompt, **tokenization: Any) -> list[int]:
    return list(render(renderer, prompt, **tokenization)[0].token_ids)


def chat(*contents: Any, add: bool = False) -> ChatPrompt:
    return ChatPrompt(tuple({"role": "user", "content": content} for content in contents), add)


class TestWhatTheModelSees:
    @pytest.mark.parametrize("kind", KINDS)
    def test_is_the_rendered_text_without_more_special_tokens(self, backend_of: Callable[[str], Tokenizer], kind: str):
        backend = backend_of(kind)
        text = "<start>Query: the fox<end>Document: quick<end><start>yes or no?"
        expected = backend.encode(text, add_special_tokens=False).ids
        assert ids(Renderer(TextTokenizer(backend), 99, templates=PAIRS), PairPrompt("the fox", "quick")) == expected

    def test_of_a_chat_may_end_with_the_start_of_an_answer(self, backend_of: Callable[[str], Tokenizer]):
        backend = backend_of("bytes")
        renderer = Renderer(TextTokenizer(backend), 99, templates=CHATS)
        for add, text in ((False, "<start>user\nthe<end>"), (True, "<start>user\nthe<end><start>assistant\n")):
            assert ids(renderer, chat("the", add=add)) == backend.encode(text, add_special_tokens=False).ids

    def test_of_a_pair_is_the_tokenizers_own_where_the_template_takes_none(
        self, backend_of: Callable[[str], Tokenizer]
    ):
        tokenizer = TextTokenizer(backend_of("demo"))
        templates = ChatTemplates("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}")
        pair = PairPrompt("the", "fox")
        assert ids(Renderer(tokenizer, 99, templates=templates), pair) == ids(Renderer(tokenizer, 99), pair)

    def test_keeps_its_place_among_other_prompts(self, backend_of: Callable[[str], Tokenizer]):
        renderer = Renderer(TextTokenizer(backend_of("bytes")), 99, templates=CHATS)
        prompts = [chat("the"), TextPrompt("fox"), PairPrompt("a", "b"), chat("quick", "fox"), TextPrompt("dogs")]
        alone = [ids(renderer, prompt) for prompt in prompts]
        assert [list(each.token_ids) for each in render(renderer, *prompts)] == alone


class TestTruncation:
    @pytest.mark.parametrize("kind", KINDS)
    @relaxed
    @given(query=WORDS, document=WORDS, keep=st.integers(1, 80), side=st.sampled_from(SIDES))
    def test_of_a_pair_cuts_the_document_alone(
        self,
        backend_of: Callable[[str], Tokenizer],
        kind: str,
        query: list[str],
        document: list[str],
        keep: int,
        side: str,
    ):
        pair = PairPrompt(" ".join(query), " ".join(document))
        self.check(backend_of(kind), PAIRS, pair, PAIRS.render_pair(pair.text, pair.text_pair), keep, side)

    @pytest.mark.parametrize("kind", KINDS)
    @relaxed
    @given(contents=st.lists(WORDS, min_size=1, max_size=3), keep=st.integers(1, 80), side=st.sampled_from(SIDES))
    def test_of_a_chat_cuts_its_last_message_alone(
        self, backend_of: Callable[[str], Tokenizer], kind: str, contents: list[list[str]], keep: int, side: str
    ):
        prompt = chat(*map(" ".join, contents), add=True)
        text = CHATS.render(prompt.messages, add_generation_prompt=True)
        self.check(backend_of(kind), CHATS, prompt, text, keep, side)

    def check(
        self, backend: Tokenizer, templates: ChatTemplates, prompt: Prompt, text: str, keep: int, side: str
    ) -> None:
        content = prompt.text_pair if isinstance(prompt, PairPrompt) else prompt.messages[-1]["content"]
        renderer = Renderer(tokenizer_of(backend), 999, templates=templates)
        whole = backend.encode(text, add_special_tokens=False)
        # The template up to the content and from behind it, with whatever straddles a border, stays.
        end = len(text) - (len("<end><start>assistant\n") if templates is CHATS else len("<end><start>yes or no?"))
        inside = [end - len(content) <= first and last <= end for first, last in whole.offsets]
        head, tail = (inside.index(True), inside[::-1].index(True)) if any(inside) else (len(inside), 0)
        if head + tail > keep:
            with pytest.raises(InvalidRequest, match=f"has {head + tail} tokens without the text that may be cut"):
                render(renderer, prompt, truncate_prompt_tokens=keep, truncation_side=side)
            return
        kept = ids(renderer, prompt, truncate_prompt_tokens=keep, truncation_side=side)
        assert len(kept) == min(keep, len(whole.ids))
        middle = kept[head : len(kept) - tail]
        assert kept[:head] == whole.ids[:head]
        assert kept[len(kept) - tail :] == whole.ids[len(whole.ids) - tail :]
        carried = whole.ids[head : len(whole.ids) - tail]
        assert middle == (carried[: len(middle)] if side == "right" else carried[len(carried) - len(middle) :])

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("side", SIDES)
    def test_of_a_huge_document_leaves_what_it_leaves_of_the_whole(
        self, backend_of: Callable[[str], Tokenizer], monkeypatch: pytest.MonkeyPatch, kind: str, side: str
    ):
        tokenizer = TextTokenizer(backend_of(kind))
        seen: list[int] = []
        encoding_of = tokenizer.encoding_of
        monkeypatch.setattr(tokenizer, "encoding_of", lambda text: seen.append(len(text)) or encoding_of(text))
        document = "the quick brown fox's tail isn't 12345 lazy dogs " * 3000
        pair = PairPrompt("the fox", document)
        self.check(backend_of(kind), PAIRS, pair, PAIRS.render_pair("the fox", document), 100, side)
        ids(Renderer(tokenizer, 100, templates=PAIRS), pair, truncate_prompt_tokens=-1, truncation_side=side)
        assert sum(seen) < len(document) / 10

    def test_may_cut_the_text_part_of_a_message(self, backend_of: Callable[[str], Tokenizer]):
        renderer = Renderer(TextTokenizer(backend_of("bytes")), 99, templates=CHATS)
        parts = [{"type": "text", "text": "quick"}, {"type": "text", "text": " fox" * 20}]
        assert ids(renderer, chat(parts), truncate_prompt_tokens=20) == ids(
            renderer, chat("quick" + " fox" * 20), truncate_prompt_tokens=20
        )

    def test_where_the_content_can_not_be_found_is_refused(self, backend_of: Callable[[str], Tokenizer]):
        twice = ChatTemplates("{% for m in messages %}{{ m.content }} {{ m.content }}{% endfor %}")
        renderer = Renderer(TextTokenizer(backend_of("bytes")), 20, templates=twice)
        assert len(ids(renderer, chat("fox"), truncate_prompt_tokens=-1)) < 20
        with pytest.raises(
            InvalidRequest, match="Prompt 1 is to be cut to 20 tokens, but where its text lies in"
        ) as caught:
            render(renderer, chat("the"), chat("fox " * 20), truncate_prompt_tokens=-1)
        assert str(caught.value).endswith("can't be told. Shorten it instead.")

    def test_that_would_have_to_cut_the_template_is_refused(self, backend_of: Callable[[str], Tokenizer]):
        renderer = Renderer(TextTokenizer(backend_of("bytes")), 20, templates=CHATS)
        with pytest.raises(InvalidRequest, match=r"Prompt 0 has \d+ tokens without the text that may be cut, which is"):
            render(renderer, chat("fox " * 30, "the"), truncate_prompt_tokens=-1)


class TestWhatIsRefused:
    @pytest.mark.parametrize("content", ["fox " * 30, "fox " * 100_000])
    def test_is_what_is_too_long(self, backend_of: Callable[[str], Tokenizer], content: str):
        renderer = Renderer(TextTokenizer(backend_of("bytes")), 20, templates=CHATS)
        with pytest.raises(
            InvalidRequest, match=r"Prompt 1 has (\d+|more than 20) tokens; this model takes at most 20"
        ):
            render(renderer, chat("the"), chat(content))

    def test_is_a_chat_without_a_template(self, backend_of: Callable[[str], Tokenizer]):
        with pytest.raises(InvalidRequest) as caught:
            render(Renderer(TextTokenizer(backend_of("bytes")), 20), TextPrompt("the"), chat("fox"))
        assert str(caught.value) == (
            "Prompt 1 is a chat, but this model has no chat template. Send a text, or start with a chat template."
        )

    def test_is_what_the_template_refuses(self, backend_of: Callable[[str], Tokenizer]):
        picky = ChatTemplates("{% if messages | length > 1 %}{{ raise_exception('one only') }}{% endif %}x")
        with pytest.raises(InvalidRequest, match=r"Prompt 1: The model's chat template .*TemplateError: one only"):
            render(Renderer(TextTokenizer(backend_of("bytes")), 20, templates=picky), chat("a"), chat("a", "b"))

    @pytest.mark.parametrize(
        "messages",
        [
            [{"role": "user", "content": "a\ud800"}],
            [{"role": "user", "content": [{"type": "text", "text": "\udfff"}]}],
            [{"role": "us\ud800er", "content": "a"}],
            [{"role": "user", "content": "a" * 5000 + "\ud800"}],
        ],
    )
    def test_is_what_is_no_unicode(self, backend_of: Callable[[str], Tokenizer], messages: list[dict[str, Any]]):
        renderer = Renderer(TextTokenizer(backend_of("bytes")), 20, templates=CHATS)
        with pytest.raises(InvalidRequest, match="Prompt 0 is no valid Unicode"):
            render(renderer, ChatPrompt(tuple(messages)), truncate_prompt_tokens=-1)


def test_a_directory_with_a_template_serves_chats(tokenizer_pair: Callable[[str], Any], tmp_path: Path):
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }} fox")
    renderer = Renderer(tokenizer_pair("bytes").ours, 20, templates=ChatTemplates.from_directory(tmp_path))
    assert ids(renderer, chat("the")) == ids(renderer, TextPrompt("the fox"), add_special_tokens=False)
