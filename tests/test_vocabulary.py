"""Specifies the vocabulary: configs, params, errors, tasks and outputs, which every room shares."""

from __future__ import annotations

import pickle
from http import HTTPStatus
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from poolhook import errors
from poolhook.config import EngineConfig, ModelConfig, PoolerConfig, PoolingType
from poolhook.errors import ClientError, ConfigError, PoolhookError, describe_problems, shorten
from poolhook.outputs import EmbeddingOutput, EmbeddingRequestOutput, PoolingOutput, PoolingRequestOutput
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.tasks import POOLING_TASKS, in_order

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


class TestTasks:
    @given(st.lists(st.sampled_from(POOLING_TASKS)))
    def test_are_listed_once_each_in_a_stable_order(self, tasks: list[Any]):
        assert in_order(tasks) == tuple(task for task in POOLING_TASKS if task in tasks)

    def test_begin_with_embed_and_end_with_plugin(self):
        assert POOLING_TASKS == ("embed", "classify", "token_embed", "token_classify", "plugin")


class TestGetPoolingTask:
    @given(st.lists(st.sampled_from(POOLING_TASKS), min_size=1))
    def test_is_the_first_supported_one(self, supported: list[Any]):
        assert ModelConfig("BertModel").get_pooling_task(supported) == min(supported, key=POOLING_TASKS.index)

    @given(
        st.sets(st.sampled_from(POOLING_TASKS), min_size=1),
        st.sampled_from(["BertModel", "BertForTokenClassification"]),
    )
    def test_is_the_operators_choice_before_all_else(self, supported: set[Any], architecture: str):
        for task in supported:
            config = ModelConfig(architecture, PoolerConfig(task=task))
            assert config.get_pooling_task(supported) == task

    def test_is_token_classify_for_an_architecture_made_for_it(self):
        model = ModelConfig("BertForTokenClassification")
        assert model.get_pooling_task(["embed", "token_classify"]) == "token_classify"
        assert model.get_pooling_task(["embed"]) == "embed"

    def test_that_is_not_supported_is_refused_with_all_that_are(self):
        model = ModelConfig("BertModel", PoolerConfig(task="classify"))
        with pytest.raises(ConfigError) as caught:
            model.get_pooling_task(["plugin", "token_embed", "embed"])
        assert str(caught.value) == (
            "BertModel: Task 'classify' is not supported. Supported tasks: embed, token_embed, plugin."
        )

    def test_of_a_model_without_any_is_refused(self):
        with pytest.raises(ConfigError, match="BertModel supports no pooling task"):
            ModelConfig("BertModel").get_pooling_task([])


class TestConfigs:
    @pytest.mark.parametrize("config", [PoolerConfig, EngineConfig, PoolingParams, TokenizationParams])
    def test_are_frozen_and_know_their_options(self, config: Any):
        made = config()
        with pytest.raises(ValidationError, match="frozen"):
            setattr(made, next(iter(config.model_fields)), None)
        with pytest.raises(ValidationError, match="no_such_option"):
            config(no_such_option=1)

    @pytest.mark.parametrize("device", ["auto", "cpu", "mps", "cuda", "cuda:0", "cuda:11"])
    def test_take_a_device(self, device: str):
        assert EngineConfig(device=device).device == device

    @pytest.mark.parametrize("device", ["", "gpu", "cuda:", "cuda:x", "cpu:0", "CUDA", "tpu", "auto\n"])
    def test_refuse_what_is_no_device(self, device: str):
        with pytest.raises(ValidationError, match="device"):
            EngineConfig(device=device)

    @pytest.mark.parametrize(
        "options", [{"dtype": "int8"}, {"max_num_batched_tokens": 0}, {"max_queued_tokens": -1}, {"dtype": None}]
    )
    def test_refuse_values_that_make_no_sense(self, options: dict[str, Any]):
        with pytest.raises(ValidationError, match=next(iter(options))):
            EngineConfig(**options)

    @pytest.mark.parametrize("kind", PoolingType)
    def test_name_pooling_by_its_value(self, kind: PoolingType):
        step_tag_id = 5 if kind is PoolingType.STEP else None
        for name in (kind.value, kind.value.lower(), kind.value.lower().replace("_", "-")):
            config = PoolerConfig.model_validate({"pooling_type": name, "step_tag_id": step_tag_id})
            assert config.pooling_type is kind

    @pytest.mark.parametrize("options", [{"pooling_type": "MEDIAN"}, {"task": "score"}, {"use_activation": "perhaps"}])
    def test_refuse_unknown_pooling(self, options: dict[str, Any]):
        with pytest.raises(ValidationError, match=next(iter(options))):
            PoolerConfig.model_validate(options)


class TestParams:
    @pytest.mark.parametrize(
        "options",
        [{"dimensions": 0}, {"dimensions": -1}, {"dimensions": "8"}, {"dimensions": True}, {"use_activation": 1}],
    )
    def test_of_pooling_are_strict(self, options: dict[str, Any]):
        with pytest.raises(ValidationError, match=next(iter(options))):
            PoolingParams.model_validate(options)

    @pytest.mark.parametrize(
        "options",
        [
            {"truncate_prompt_tokens": -2},
            {"truncate_prompt_tokens": 1.5},
            {"truncation_side": "middle"},
            {"add_special_tokens": 1},
        ],
    )
    def test_of_tokenization_are_strict(self, options: dict[str, Any]):
        with pytest.raises(ValidationError, match=next(iter(options))):
            TokenizationParams.model_validate(options)

    def test_leave_everything_to_the_model_unless_told(self):
        assert PoolingParams().model_dump(exclude_none=True) == {}
        assert TokenizationParams() == TokenizationParams(
            truncate_prompt_tokens=None, truncation_side=None, add_special_tokens=True
        )


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


class TestOutputs:
    def test_an_embedding_is_a_tensor_a_list_and_an_array(self):
        output = EmbeddingOutput(torch.tensor([1.0, 2.0]))
        assert output.embedding == [1.0, 2.0]
        assert output.hidden_size == 2
        assert output.numpy().tolist() == [1.0, 2.0]
        assert output.numpy().dtype == "float32"

    def test_a_pooled_output_can_be_read_as_an_embedding(self):
        pooled = PoolingRequestOutput("id-1", PoolingOutput(torch.ones(3)), (5, 6))
        output = EmbeddingRequestOutput.of(pooled)
        assert (output.request_id, output.prompt_token_ids, output.finished) == ("id-1", (5, 6), True)
        assert output.outputs.embedding == [1.0] * 3
        assert isinstance(output, PoolingRequestOutput)

    def test_outputs_cross_process_borders(self):
        output = EmbeddingRequestOutput("id-1", EmbeddingOutput(torch.ones(3)), (5, 6))
        copy = pickle.loads(pickle.dumps(output))
        assert type(copy) is EmbeddingRequestOutput
        assert copy.outputs.embedding == output.outputs.embedding
