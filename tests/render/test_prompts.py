"""Specifies the forms in which prompts may come, and that everything else is refused as what it is."""

from __future__ import annotations

import array
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poolhook.errors import InvalidRequest
from poolhook.render import ChatPrompt, PairPrompt, TextPrompt, TokensPrompt, as_prompts

TEXT, IDS, PAIR = TextPrompt("a"), TokensPrompt((1, 2)), PairPrompt("a", "b")
MESSAGE = {"role": "user", "content": "a"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
CHAT = ChatPrompt((MESSAGE,))


class TestOnePrompt:
    @pytest.mark.parametrize(
        ("given", "read"),
        [
            ("a", TEXT),
            ({"prompt": "a"}, TEXT),
            ({"prompt": "a", "prompt_token_ids": None}, TEXT),
            (TEXT, TEXT),
            ("", TextPrompt("")),
            ([1, 2], IDS),
            ((1, 2), IDS),
            (range(1, 3), IDS),
            ({"prompt_token_ids": [1, 2]}, IDS),
            ({"prompt_token_ids": np.array([1, 2])}, IDS),
            ({"prompt_token_ids": []}, TokensPrompt(())),
            (IDS, IDS),
            (np.array([1, 2]), IDS),
            (np.array([1, 2], dtype=np.uint8), IDS),
            (list(np.array([1, 2])), IDS),
            (torch.tensor([1, 2]), IDS),
            (list(torch.tensor([1, 2])), IDS),
            (array.array("i", [1, 2]), IDS),
            (np.str_("a"), TEXT),
            (TextPrompt("a", "query: ", "query"), TextPrompt("a", "query: ", "query")),
            ({"text": "a", "text_pair": "b"}, PAIR),
            ({"text": "a", "text_pair": "b", "prompt": None}, PAIR),
            (PAIR, PAIR),
            ({"messages": [MESSAGE]}, CHAT),
            ({"messages": (MESSAGE, PARTS)}, ChatPrompt((MESSAGE, PARTS))),
            ({"messages": [MESSAGE], "add_generation_prompt": True}, ChatPrompt((MESSAGE,), True)),
            ({"messages": [MESSAGE | {"name": "me"}]}, ChatPrompt((MESSAGE | {"name": "me"},))),
            (CHAT, CHAT),
        ],
    )
    def test_may_have_any_of_its_forms(self, given: Any, read: Any):
        assert as_prompts(given) == [read]

    def test_of_token_ids_holds_plain_integers(self):
        (prompt,) = as_prompts([np.int64(3), 4, torch.tensor(5)])
        assert isinstance(prompt, TokensPrompt)
        assert [type(token) for token in prompt.token_ids] == [int] * 3


class TestManyPrompts:
    @pytest.mark.parametrize(
        ("given", "read"),
        [
            ([], []),
            ((), []),
            (["a", "a"], [TEXT, TEXT]),
            (
                ["a", [1, 2], {"prompt": "a"}, {"prompt_token_ids": (1, 2)}, TEXT, IDS, PAIR, {"messages": [MESSAGE]}],
                [TEXT, IDS, TEXT, IDS, TEXT, IDS, PAIR, CHAT],
            ),
            ([[1, 2], [1, 2]], [IDS, IDS]),
            (np.array([[1, 2], [1, 2]]), [IDS, IDS]),
            ([np.array([1, 2]), np.array([1, 2])], [IDS, IDS]),
            (np.array(["a", "a"]), [TEXT, TEXT]),
            ([[]], [TokensPrompt(())]),
        ],
    )
    def test_may_mix_the_forms(self, given: Any, read: list[Any]):
        assert as_prompts(given) == read


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (None, "The prompt is NoneType None; give a text, a list of token ids,"),
            (5, "The prompt is int 5"),
            (True, "The prompt is bool True"),
            (b"a", "The prompt is bytes b'a'"),
            ({"a"}, "The prompt is set"),
            ({}, "The prompt is dict {}"),
            ({"text": "a"}, "The prompt is dict {'text': 'a'}"),
            ({"prompt": "a", "prompt_token_ids": [1]}, "The prompt is dict"),
            ({"prompt": "a", "temperature": 1}, "The prompt is dict"),
            ({"prompt": "a", "temperature": None}, "The prompt is dict"),
            ({"prompt_token_ids": "a"}, "The prompt is dict"),
            ({"text": "a", "text_pair": 5}, "The prompt is dict {'text': 'a', 'text_pair': 5}"),
            ({"text": "a", "text_pair": None}, "or {'messages': [{'role': ..., 'content': ...}]}."),
            ({"text_pair": "a"}, "The prompt is dict"),
            ({"messages": [MESSAGE], "prompt": "a"}, "The prompt is dict"),
            ({"messages": [MESSAGE], "add_generation_prompt": 1}, "The prompt is dict"),
            ([MESSAGE], "Prompt 0 is dict"),
            ({"messages": []}, "The prompt has [] for messages; give a list of at least one."),
            ({"messages": "a"}, "The prompt has a for messages"),
            ({"messages": MESSAGE}, "The prompt has {'content': 'a', 'role': 'user'} for messages"),
            (
                {"messages": [MESSAGE, "a"]},
                "The prompt has a as message 1; a message is {'role': text, 'content': text}",
            ),
            ({"messages": [{"content": "a"}]}, "The prompt has {'content': 'a'} as message 0"),
            ({"messages": [{"role": 5, "content": "a"}]}, "as message 0"),
            ({"messages": [{"role": "user"}]}, "as message 0"),
            ({"messages": [{"role": "user", "content": None}]}, "as message 0"),
            ({"messages": [{"role": "user", "content": []}]}, "as message 0"),
            ({"messages": [{"role": "user", "content": ["a"]}]}, "as message 0"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "as message 0"),
            (["a", ChatPrompt(())], "Prompt 1 has () for messages"),
            (["a", ChatPrompt(({"role": "user"},))], "Prompt 1 has {'role': 'user'} as message 0"),
            ({"prompt_token_ids": [1, "a"]}, "The prompt has a (str) at position 1 of its token ids"),
            ([1, 2.5], "The prompt has 2.5 (float) at position 1"),
            ([1, True], "The prompt has True (bool) at position 1"),
            (["a", 5], "Prompt 1 is int 5"),
            (["a", None], "Prompt 1 is NoneType None"),
            (["a", [1, "b"]], "Prompt 1 has b (str) at position 1"),
            ([True, False], "Prompt 0 is bool True"),
            (np.array([0.5]), "Prompt 0 is float 0.5"),
            (np.array(5), "The prompt is int 5"),
            (np.zeros((1, 2, 2), dtype=int), "Prompt 0 has [0, 0] (list) at position 0"),
            (np.ndarray, "The prompt is type"),
            (object(), "The prompt is object <object"),
        ],
    )
    def test_is_said_with_its_place_and_its_type(self, given: Any, message: str):
        with pytest.raises(InvalidRequest) as caught:
            as_prompts(given)
        assert message in str(caught.value)
        assert caught.value.param == "input"

    def test_is_quoted_in_bounded_length_and_depth(self):
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        for value in (deep, {"x": "y" * 10**6}, [[["z"] * 10**6]], {"messages": deep}, {"messages": "y" * 10**6}):
            with pytest.raises(InvalidRequest) as caught:
                as_prompts(value)
            assert len(str(caught.value)) < 500

    def test_may_even_have_no_repr(self):
        class Rude:
            def __repr__(self) -> str:
                raise RuntimeError

        with pytest.raises(InvalidRequest, match="The prompt is Rude"):
            as_prompts(Rude())


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
KEYS = st.sampled_from(["prompt", "prompt_token_ids", "data", "text", "text_pair", "messages", "role", "content"])
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.tuples(inner) | st.sets(SCALARS)
)


@given(ANYTHING)
def test_anything_at_all_is_prompts_or_an_invalid_request(value: Any):
    prompts: Any = ()
    with suppress(InvalidRequest):
        prompts = as_prompts(value)
    for prompt in prompts:
        assert isinstance(prompt, TextPrompt | TokensPrompt | PairPrompt | ChatPrompt)
        if isinstance(prompt, TokensPrompt):
            assert all(type(token) is int for token in prompt.token_ids)
