"""`LLM.classify`, `LLM.reward` and `LLM.encode` for tasks of labels and tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from poolhook import LLM, PoolingParams
from poolhook.outputs import ClassificationRequestOutput, PoolingRequestOutput
from served import Models
from tiny_models import expected, tiny_trained

RAW = PoolingParams(use_activation=False)
TEXTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11"]
IDS = [[2, 5, 6, 7, 3], [2, 8, 3], [2, 9, 10, 11, 12, 13, 14, 15, 3]]


@torch.inference_mode()
def logits_of(models: Models, name: str, ids: list[int]) -> torch.Tensor:
    """What plain transformers computes: `[labels]`, or `[tokens, labels]`."""
    kind = AutoModelForTokenClassification if "tagger" in name or "step" in name else AutoModelForSequenceClassification
    logits: torch.Tensor = kind.from_pretrained(models.path(name)).eval()(torch.tensor([ids])).logits[0]
    return logits


class TestClassify:
    def test_gives_the_probability_of_each_label_and_the_name_of_the_best(self, models: Models):
        outputs = models("classifier").llm.classify(TEXTS)
        assert [list(output.prompt_token_ids) for output in outputs] == IDS
        for ids, output in zip(IDS, outputs, strict=True):
            assert type(output) is ClassificationRequestOutput
            wanted = logits_of(models, "classifier", ids).softmax(-1)
            np.testing.assert_allclose(output.outputs.probs, wanted, atol=1e-5)
            assert sum(output.outputs.probs) == pytest.approx(1, abs=1e-5)
            assert output.outputs.num_classes == 3
            assert output.outputs.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
            assert output.outputs.label == f"LABEL_{int(wanted.argmax().item())}"

    def test_gives_logits_where_the_activation_is_left_out(self, models: Models):
        both = models("classifier").llm.classify(["w4", "w4"], pooling_params=[RAW, PoolingParams()])
        logits = logits_of(models, "classifier", IDS[1])
        np.testing.assert_allclose(both[0].outputs.probs, logits, atol=1e-5)
        np.testing.assert_allclose(both[1].outputs.probs, logits.softmax(-1), atol=1e-5)
        assert both[0].outputs.label == both[1].outputs.label

    def test_makes_a_probability_of_a_single_label_with_sigmoid(self, models: Models):
        (output,) = models("reranker").llm.classify("w4")
        assert output.outputs.probs == pytest.approx(logits_of(models, "reranker", IDS[1]).sigmoid().tolist(), abs=1e-5)
        assert (output.outputs.num_classes, output.outputs.label) == (1, "LABEL_0")

    def test_reads_pairs_as_scoring_does(self, models: Models):
        pairs = [{"text": "w1 w2", "text_pair": "w3"}, {"text": "w4", "text_pair": "w5 w6"}]
        outputs = models("reranker").llm.classify(pairs)
        scores = models("reranker").llm.score(["w1 w2", "w4"], ["w3", "w5 w6"])
        assert [output.outputs.probs for output in outputs] == [[score.outputs.score] for score in scores]
        assert list(outputs[0].prompt_token_ids) == [2, 5, 6, 3, 7, 3]

    @pytest.mark.parametrize("prompts", [("w4",), iter(["w4"]), np.array(["w4"]), [IDS[1]], "w4", {"prompt": "w4"}])
    def test_takes_prompts_in_every_form(self, models: Models, prompts: Any):
        (output,) = models("classifier").llm.classify(prompts)
        np.testing.assert_allclose(output.outputs.probs, logits_of(models, "classifier", IDS[1]).softmax(-1), atol=1e-5)

    def test_of_nothing_is_nothing(self, models: Models):
        assert models("classifier").llm.classify([]) == []

    def test_follows_the_operator_and_the_request_before_the_operator(self, models: Models):
        llm = models("classifier", use_activation=False, logit_mean=0.5, logit_sigma=2.0).llm
        scaled = (logits_of(models, "classifier", IDS[1]) - 0.5) / 2
        np.testing.assert_allclose(llm.classify("w4")[0].outputs.probs, scaled, atol=1e-5)
        (asked,) = llm.classify("w4", pooling_params=PoolingParams(use_activation=True))
        np.testing.assert_allclose(asked.outputs.probs, scaled.softmax(-1), atol=1e-5)

    def test_gives_the_expected_probabilities_of_a_trained_model(self):
        items = expected("tiny-injection-classifier")["items"]
        with LLM(str(tiny_trained("tiny-injection-classifier")), device="cpu", dtype="float32") as llm:
            outputs = llm.classify([item["text"] for item in items])
        assert [output.outputs.label for output in outputs] == [item["label"] for item in items]
        np.testing.assert_allclose(
            [output.outputs.probs for output in outputs], [item["probabilities"] for item in items], atol=1e-4
        )


class TestReward:
    def test_of_a_model_with_one_label_is_one_number_for_each_prompt(self, models: Models):
        outputs = models("reranker").llm.reward(TEXTS)
        assert all(type(output) is PoolingRequestOutput for output in outputs)
        wanted = [logits_of(models, "reranker", ids).sigmoid().tolist() for ids in IDS]
        np.testing.assert_allclose([output.outputs.data for output in outputs], wanted, atol=1e-5)
        (raw,) = models("reranker").llm.reward("w4", pooling_params=RAW)
        np.testing.assert_allclose(raw.outputs.data, logits_of(models, "reranker", IDS[1]), atol=1e-5)

    def test_of_a_model_that_labels_tokens_is_a_row_for_each_token(self, models: Models):
        for ids, output in zip(IDS, models("tagger").llm.reward(TEXTS), strict=True):
            wanted = logits_of(models, "tagger", ids).softmax(-1)
            np.testing.assert_allclose(output.outputs.data, wanted, atol=1e-5)

    def test_of_steps_is_a_row_for_each_token_that_ends_one(self, models: Models):
        llm = models("step-rewarder", pooling_type="STEP", step_tag_id=8).llm
        outputs = llm.reward(["w1 w4 w2 w3 w4", "w1 w2", "w4"])
        whole = logits_of(models, "step-rewarder", [2, 5, 8, 6, 7, 8, 3]).sigmoid()
        np.testing.assert_allclose(outputs[0].outputs.data, whole[[2, 5]], atol=1e-5)
        assert outputs[1].outputs.data.shape == (0, 1)
        np.testing.assert_allclose(
            outputs[2].outputs.data, logits_of(models, "step-rewarder", [2, 8, 3]).sigmoid()[[1]], atol=1e-5
        )

    def test_of_nothing_is_nothing(self, models: Models):
        assert models("tagger").llm.reward([]) == []


class TestEncode:
    def test_gives_the_labels_of_each_token(self, models: Models):
        for ids, output in zip(IDS, models("tagger").llm.encode(TEXTS), strict=True):
            assert list(output.prompt_token_ids) == ids
            np.testing.assert_allclose(output.outputs.data, logits_of(models, "tagger", ids).softmax(-1), atol=1e-5)
        (raw,) = models("tagger").llm.encode("w4", pooling_task="token_classify", pooling_params=RAW)
        np.testing.assert_allclose(raw.outputs.data, logits_of(models, "tagger", IDS[1]), atol=1e-5)

    def test_gives_the_vector_of_each_token_cut_and_normalised_for_each_prompt_as_it_asks(self, models: Models):
        params = [PoolingParams(), PoolingParams(dimensions=8), PoolingParams(use_activation=False)]
        outputs = models("embedder").llm.encode(["w4"] * 3, pooling_task="token_embed", pooling_params=params)
        whole, cut, raw = (output.outputs.data for output in outputs)
        np.testing.assert_allclose(whole, raw / raw.norm(dim=-1, keepdim=True), atol=1e-6)
        np.testing.assert_allclose(cut, raw[:, :8] / raw[:, :8].norm(dim=-1, keepdim=True), atol=1e-6)
        assert raw.shape == (3, 32)

    def test_reads_texts_of_late_interaction_in_their_role(self, models: Models):
        llm = models("colbert").llm
        items = expected("tiny-colbert")["items"]
        for item in items:
            (output,) = llm.encode(item["text"], prompt_name=item["kind"])
            assert list(output.prompt_token_ids) == item["input_ids"]
            assert list(output.outputs.data.shape) == item["shape"]
            np.testing.assert_allclose(output.outputs.data[:, :8], item["first_8"], atol=1e-4)

    def test_gives_the_parts_of_a_model_that_answers_in_several_ways(self, models: Models):
        (output,) = models("bge-m3").llm.encode("w1 w2 w3", pooling_task="plugin")
        assert output.outputs.data.shape == (32,)
        assert {name: tuple(part.shape) for name, part in output.outputs.parts.items()} == {
            "sparse": (5,),
            "colbert": (4, 32),
        }
        (tokens,) = models("bge-m3").llm.encode("w1 w2 w3", pooling_task="token_embed")
        np.testing.assert_allclose(tokens.outputs.data, output.outputs.parts["colbert"], atol=1e-5)
        (weights,) = models("bge-m3").llm.encode("w1 w2 w3", pooling_task="token_classify")
        np.testing.assert_allclose(weights.outputs.data[:, 0], output.outputs.parts["sparse"], atol=1e-5)
