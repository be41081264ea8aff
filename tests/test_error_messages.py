"""Specifies errors: whose mistake each is, that they cross process borders, and that messages stay short."""

from __future__ import annotations

import pickle
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from poolhook import errors
from poolhook.errors import ClientError, PoolhookError, describe_problems, shorten
from poolhook.params import PoolingParams

ERRORS = [
    errors.InvalidRequest("no such thing", param="input"),
    errors.UnknownModel("no such model", "model"),
    errors.RequestTooLarge("too much"),
    errors.Overloaded("full", retry_after=7),
    errors.DeadlineExceeded("late"),
    errors.ConfigError("no such option"),
    errors.ModelError("no such directory"),
    errors.EngineError("failed"),
    errors.NonFiniteOutput("NaN"),
    errors.EngineDead("dead"),
    errors.PluginLoadError("p (d 1.0)", "its import failed"),
    errors.PluginContractError("p (d 1.0)", "no such hook"),
    errors.PluginStageError("p (d 1.0)", "parse_data", "KeyError: 'x'"),
]
by_type = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


class TestErrors:
    @by_type
    def test_cross_process_borders_whole(self, error: PoolhookError):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert vars(copy) == vars(error)

    @by_type
    def test_say_whose_mistake_it_was_by_their_status(self, error: PoolhookError):
        assert (400 <= error.status < 500) == isinstance(error, ClientError)

    def test_have_the_status_of_their_kind(self):
        statuses = {type(error): error.status for error in ERRORS}
        assert statuses[errors.InvalidRequest] == HTTPStatus.BAD_REQUEST
        assert statuses[errors.UnknownModel] == HTTPStatus.NOT_FOUND
        assert statuses[errors.RequestTooLarge] == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        assert statuses[errors.Overloaded] == HTTPStatus.TOO_MANY_REQUESTS
        assert statuses[errors.DeadlineExceeded] == HTTPStatus.GATEWAY_TIMEOUT
        assert statuses[errors.EngineDead] == HTTPStatus.SERVICE_UNAVAILABLE
        assert statuses[errors.PluginStageError] == HTTPStatus.INTERNAL_SERVER_ERROR

    @pytest.mark.parametrize(
        ("error", "builtin"),
        [
            (errors.InvalidRequest("x"), ValueError),
            (errors.DeadlineExceeded("x"), TimeoutError),
            (errors.ModelError("x"), ValueError),
            (errors.EngineDead("x"), RuntimeError),
        ],
    )
    def test_can_be_caught_as_pythons_own(self, error: PoolhookError, builtin: type[Exception]):
        assert isinstance(error, builtin)
        assert isinstance(error, PoolhookError)

    def test_of_a_plugin_name_it_and_the_stage(self):
        assert str(ERRORS[-1]) == "Plugin p (d 1.0) failed in parse_data: KeyError: 'x'"
        assert str(ERRORS[-2]) == "Plugin p (d 1.0): no such hook"

    @pytest.mark.parametrize(
        "make", [errors.InvalidRequest, errors.EngineError, lambda text: errors.PluginError("p", text)]
    )
    def test_stay_short_and_printable_whatever_was_sent(self, make: Any):
        message = str(make("a\ud800" + "b" * 10**6))
        assert len(message) <= 2000
        assert message.encode()


class TestShorten:
    @given(st.text() | st.text(min_size=300), st.integers(20, 300))
    def test_never_exceeds_its_limit_and_is_always_encodable(self, text: str, limit: int):
        short = shorten(text, limit)
        assert len(short) <= limit
        assert short.encode().decode() == short

    @given(st.text(max_size=200).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))
    def test_leaves_a_short_text_as_it_is(self, text: str):
        assert shorten(text) == text

    def test_cuts_out_the_middle(self):
        assert shorten("a" * 500 + "z" * 500, 30) == "a" * 20 + " ... " + "z" * 5

    @pytest.mark.parametrize(
        ("value", "quoted"),
        [(5, "5"), (None, "None"), ([1, "a"], "[1, 'a']"), ({"a": 1}, "{'a': 1}"), (b"a", "b'a'"), (0.5, "0.5")],
    )
    def test_quotes_values_as_python_writes_them(self, value: Any, quoted: str):
        assert shorten(value) == quoted

    @pytest.mark.parametrize(
        "value", [pytest.param(10**5000, id="huge"), [[[[[[[]]]]]]], list(range(10**6)), {i: i for i in range(10**5)}]
    )
    def test_bounds_any_value(self, value: Any):
        assert 0 < len(shorten(value)) <= 200


class TestDescribeProblems:
    def test_names_the_first_field_and_bounds_the_list(self):
        problems = [{"type": "missing", "loc": ("body", i), "msg": f"problem {i}"} for i in range(9)]
        text, field = describe_problems(problems)
        assert text.startswith("body.0: problem 0; body.1: problem 1; ")
        assert text.endswith("; and 4 more")
        assert field == "body.0"

    def test_has_no_field_where_the_whole_is_wrong(self):
        problem = {"type": "dict_type", "loc": (), "msg": "not an object"}
        assert describe_problems([problem]) == ("not an object", None)
        assert describe_problems([]) == ("", None)

    def test_says_it_plainly(self):
        with pytest.raises(ValidationError) as caught:
            PoolingParams.model_validate({"no_such_option": 1})
        assert describe_problems(caught.value.errors()) == ("no_such_option: there is no such field", "no_such_option")
