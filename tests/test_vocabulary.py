"""Specifies the vocabulary: configs, params, tasks and outputs, which every room shares."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from poolhook.config import EngineConfig, ModelConfig, PoolerConfig, PoolingType
from poolhook.errors import ConfigError, describe_problems
from poolhook.outputs import (
    ClassificationOutput,
    ClassificationRequestOutput,
    EmbeddingOutput,
    EmbeddingRequestOutput,
    PoolingOutput,
    PoolingRequestOutput,
)
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.tasks import POOLING_TASKS, SCORE_TYPES, in_order, why_unsupported
from task_advice import ADVICE


class TestTasks:
    @given(st.lists(st.sampled_from(POOLING_TASKS)))
    def test_are_listed_once_each_in_a_stable_order(self, tasks: list[Any]):
        assert in_order(tasks) == tuple(task for task in POOLING_TASKS if task in tasks)

    def test_begin_with_embed_and_end_with_plugin(self):
        assert POOLING_TASKS == ("embed", "classify", "token_embed", "token_classify", "plugin")

    @pytest.mark.parametrize(
        ("task", "says"),
        [
            *ADVICE.items(),
            ("classify", "Task 'classify' is not supported."),
            (None, "No task was given."),
            (["embed"], "Task of list is not supported."),
            ("x" * 101, "Task of str is not supported."),
        ],
        ids=repr,
    )
    def test_that_are_not_supported_get_advice_and_all_that_are_in_order(self, task: Any, says: str):
        assert why_unsupported(task, ["plugin", "embed", "embed"]) == f"{says} Supported tasks: embed, plugin."
        assert why_unsupported(task, []) == f"{says} Supported tasks: none."

    def test_make_a_score_type_possible_each(self):
        assert SCORE_TYPES == {
            "embed": "bi-encoder",
            "classify": "cross-encoder",
            "token_embed": "late-interaction",
        }


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
        assert model.get_pooling_task(["embed", "classify"]) == "embed"
        assert ModelConfig("BertForSequenceClassification").get_pooling_task(["classify", "embed"]) == "embed"

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

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"pooling_type": "STEP"}, "pooling_type STEP and step_tag_id go together: give both or neither"),
            ({"step_tag_id": 5}, "pooling_type STEP and step_tag_id go together: give both or neither"),
            (
                {"pooling_type": "ALL", "step_tag_id": 5},
                "pooling_type STEP and step_tag_id go together: give both or neither",
            ),
            (
                {"max_embed_len": 5},
                "max_embed_len is for chunked processing: set enable_chunked_processing too",
            ),
        ],
        ids=str,
    )
    def test_refuse_options_that_need_each_other(self, options: dict[str, Any], says: str):
        with pytest.raises(ValidationError) as caught:
            PoolerConfig.model_validate(options)
        assert describe_problems(caught.value.errors()) == (says, None)

    @pytest.mark.parametrize(
        "options",
        [
            {"dimensions": 0},
            {"max_embed_len": 0, "enable_chunked_processing": True},
            {"logit_sigma": 0},
            {"logit_sigma": -1.5},
            {"step_tag_id": -1, "pooling_type": "STEP"},
            {"returned_token_ids": []},
            {"returned_token_ids": [-1]},
        ],
        ids=str,
    )
    def test_refuse_values_out_of_range(self, options: dict[str, Any]):
        with pytest.raises(ValidationError, match=next(iter(options))):
            PoolerConfig.model_validate(options)

    def test_know_which_pooling_answers_for_tokens(self):
        assert [kind for kind in PoolingType if kind.is_of_tokens] == [PoolingType.ALL, PoolingType.STEP]

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

    @pytest.mark.parametrize("name", ["normalize", "softmax", "activation"])
    def test_refuse_a_removed_name_with_what_to_use(self, name: str):
        with pytest.raises(ValidationError) as caught:
            PoolingParams.model_validate({name: True})
        assert describe_problems(caught.value.errors()) == (
            f"`{name}` was removed: use `use_activation`, which is the same for every task",
            name,
        )

    @pytest.mark.parametrize("model", [PoolingParams, PoolerConfig])
    @pytest.mark.parametrize("task", ["score", "encode", "normalize", "nonsense", "", 7, ["embed"], {}], ids=repr)
    def test_take_a_task_or_say_what_there_is(self, model: Any, task: Any):
        with pytest.raises(ValidationError) as caught:
            model(task=task)
        assert describe_problems(caught.value.errors()) == (f"task: {why_unsupported(task, POOLING_TASKS)}", "task")
        assert [model(task=known).task for known in POOLING_TASKS] == list(POOLING_TASKS)
        assert model(task=None).task is None

    def test_leave_everything_to_the_model_unless_told(self):
        assert PoolingParams().model_dump(exclude_none=True) == {}
        assert TokenizationParams() == TokenizationParams(
            truncate_prompt_tokens=None, truncation_side=None, add_special_tokens=True
        )


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

    def test_a_classification_names_the_best_label_and_the_first_of_equals(self):
        output = ClassificationOutput([0.25, 0.5, 0.25], ("a", "b", "c"))
        assert (output.num_classes, output.label) == (3, "b")
        assert ClassificationOutput([0.5, 0.5], ("a", "b")).label == "a"
        assert ClassificationOutput([-3.0, -1.0], ("a", "b")).label == "b"

    def test_a_pooled_output_can_be_read_as_a_classification(self):
        pooled = PoolingRequestOutput("id-1", PoolingOutput(torch.tensor([0.25, 0.75])), (5, 6))
        output = ClassificationRequestOutput.of(pooled, ("a", "b"))
        assert (output.request_id, output.prompt_token_ids) == ("id-1", (5, 6))
        assert (output.outputs.probs, output.outputs.label) == ([0.25, 0.75], "b")

    def test_pooled_data_has_no_parts_unless_a_model_has_some(self):
        assert PoolingOutput(torch.ones(1)).parts == {}

    def test_outputs_cross_process_borders(self):
        output = EmbeddingRequestOutput("id-1", EmbeddingOutput(torch.ones(3)), (5, 6))
        copy = pickle.loads(pickle.dumps(output))
        assert type(copy) is EmbeddingRequestOutput
        assert copy.outputs.embedding == output.outputs.embedding
