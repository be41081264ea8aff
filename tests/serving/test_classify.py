"""`/classify`: a label and all probabilities for each prompt, those of `LLM.classify`."""

from __future__ import annotations

from typing import Any

import pytest

from poolhook import PoolingParams
from served import Models


def probs(answer: Any) -> list[list[float]]:
    assert [item["index"] for item in answer["data"]] == list(range(len(answer["data"])))
    return [item["probs"] for item in answer["data"]]


@pytest.mark.parametrize(
    "prompts", ["w1", ["w1", "w2 w3"], [5, 6, 7], [[5, 6], [7]], {"prompt": "w1"}, [{"text": "w1", "text_pair": "w2"}]]
)
def test_it_answers_as_llm_does_to_prompts_in_every_form(models: Models, prompts: Any):
    served = models("classifier")
    wanted = served.llm.classify(prompts)
    answer = served.post("/classify", input=prompts)
    assert probs(answer) == [pytest.approx(output.outputs.probs, abs=1e-6) for output in wanted]
    assert [item["label"] for item in answer["data"]] == [output.outputs.label for output in wanted]
    assert answer["usage"]["prompt_tokens"] == sum(len(output.prompt_token_ids) for output in wanted)


def test_its_shape_is_vllms(models: Models):
    answer = models("classifier").post("/classify", input="w1")
    assert set(answer) == {"id", "object", "created", "model", "data", "usage"}
    assert answer["id"].startswith("classify-")
    assert answer["object"] == "list"
    assert answer["model"] == str(models.path("classifier"))
    (item,) = answer["data"]
    assert set(item) == {"index", "label", "probs", "num_classes"}
    assert item["num_classes"] == len(item["probs"]) == 3
    assert item["label"] == f"LABEL_{item['probs'].index(max(item['probs']))}"


def test_without_the_activation_it_gives_logits(models: Models):
    served = models("classifier")
    (raw,) = served.llm.classify("w1", pooling_params=PoolingParams(use_activation=False))
    (online,) = probs(served.post("/classify", input="w1", use_activation=False))
    assert online == pytest.approx(raw.outputs.probs, abs=1e-6)
    assert sum(online) != pytest.approx(1, abs=1e-3)
    assert sum(probs(served.post("/classify", input="w1", use_activation=None))[0]) == pytest.approx(1, abs=1e-5)


def test_special_tokens_may_be_left_out(models: Models):
    answer = models("classifier").post("/classify", input="w1 w2", add_special_tokens=False)
    assert answer["usage"]["prompt_tokens"] == 2
    assert probs(answer) == [pytest.approx(probs(models("classifier").post("/classify", input=[5, 6]))[0], abs=1e-6)]
