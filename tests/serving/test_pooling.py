"""`/pooling`: the raw pooled data of any task, as numbers or as base64 with its shape, and its parts."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from served import Models


def decoded(item: Any) -> np.ndarray:
    """Pooled data that was sent as base64, in the shape that stands beside it."""
    return np.frombuffer(base64.b64decode(item["data"]), dtype="<f4").reshape(item.get("shape", -1))


@pytest.mark.parametrize("name", ["tagger", "colbert"])
def test_rows_of_tokens_are_the_same_as_numbers_and_as_base64_with_their_shape(models: Models, name: str):
    served, texts = models(name), ["w1 w2 w3", "w4"]
    outputs = served.llm.encode(texts)
    floats = served.post("/pooling", input=texts, encoding_format="float")["data"]
    packed = served.post("/pooling", input=texts, encoding_format="base64")["data"]
    for index, (output, numbers, text) in enumerate(zip(outputs, floats, packed, strict=True)):
        assert (numbers["index"], text["index"]) == (index, index)
        assert (numbers["object"], text["object"]) == ("pooling", "pooling")
        assert text["shape"] == list(output.outputs.data.shape)
        assert "shape" not in numbers
        np.testing.assert_array_equal(decoded(text), np.array(numbers["data"], dtype=np.float32))
        np.testing.assert_allclose(decoded(text), output.outputs.data, atol=1e-6)


def test_a_single_row_needs_no_shape(models: Models):
    (item,) = models("embedder").post("/pooling", input="w1", encoding_format="base64")["data"]
    assert "shape" not in item
    assert decoded(item).shape == (32,)


def test_roles_of_late_interaction_are_prompt_names(models: Models):
    served = models("colbert")
    for role in ("query", "document"):
        (output,) = served.llm.encode("what is a guitar ?", prompt_name=role)
        (item,) = served.post("/pooling", input="what is a guitar ?", prompt_name=role)["data"]
        np.testing.assert_allclose(item["data"], output.outputs.data, atol=1e-6)
    wanted = "prompt_name is 'passage'; this late-interaction model's are query, document."
    assert served.refused("/pooling", input="w1", prompt_name="passage") == (wanted, "prompt_name")


def test_a_prompt_name_where_prompts_pass_as_they_are_is_refused(models: Models):
    wanted = (
        "prompt_name is not for task 'token_classify', which passes prompts through as they are. Put the model's "
        "prompt before each text yourself."
    )
    assert models("tagger").refused("/pooling", input="w1", prompt_name="query") == (wanted, "prompt_name")


class TestBgeM3:
    def test_task_plugin_has_its_parts_by_name(self, models: Models):
        served = models("bge-m3")
        (output,) = served.llm.encode("w1 w2", pooling_task="plugin")
        (item,) = served.post("/pooling", input="w1 w2", task="plugin")["data"]
        assert set(item["parts"]) == {"sparse", "colbert"}
        np.testing.assert_allclose(item["data"], output.outputs.data, atol=1e-6)
        for name, part in item["parts"].items():
            np.testing.assert_allclose(part["data"], output.outputs.parts[name], atol=1e-6)

    def test_parts_in_base64_have_shapes(self, models: Models):
        served = models("bge-m3")
        (numbers,) = served.post("/pooling", input="w1 w2", task="plugin")["data"]
        (packed,) = served.post("/pooling", input="w1 w2", task="plugin", encoding_format="base64")["data"]
        assert "shape" not in packed
        assert "shape" not in packed["parts"]["sparse"]
        assert packed["parts"]["colbert"]["shape"] == [3, 32]
        for name, part in packed["parts"].items():
            np.testing.assert_allclose(decoded(part), numbers["parts"][name]["data"], atol=1e-6)

    def test_its_other_tasks_are_the_parts_alone(self, models: Models):
        served = models("bge-m3")
        (whole,) = served.post("/pooling", input="w1 w2", task="plugin")["data"]
        (dense,) = served.post("/pooling", input="w1 w2", task="embed")["data"]
        (tokens,) = served.post("/pooling", input="w1 w2", task="token_embed")["data"]
        np.testing.assert_allclose(dense["data"], whole["data"], atol=1e-6)
        np.testing.assert_allclose(tokens["data"], whole["parts"]["colbert"]["data"], atol=1e-6)
        assert "parts" not in dense

    def test_data_is_refused_since_no_processor_was_chosen(self, models: Models):
        message, param = models("bge-m3").refused("/pooling", data={"text": "w1"})
        assert message.startswith(
            "No IO processor was chosen, so `data` has nobody to read it; send prompts as `input`, or choose one with "
            "io_processor_plugin (installed: "
        )
        assert param == "data"


def test_no_token_at_all_is_an_empty_row_with_its_shape(models: Models):
    served = models("step-rewarder", pooling_type="STEP", step_tag_id=8)
    (item,) = served.post("/pooling", input="w1", encoding_format="base64")["data"]
    assert (item["data"], item["shape"]) == ("", [0, 1])
    assert served.post("/pooling", input="w1")["data"][0]["data"] == []
