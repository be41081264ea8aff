"""Specifies `Pooler`: the tasks of a model, and who is asked for which."""

from __future__ import annotations

import pytest
import torch

from pooler_steps import LABELS, SIZE, linear, whole_step
from poolhook.config import PoolingType
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import ClassifyPooler, EmbedPooler, Pooler
from poolhook.tasks import PoolingTask, why_unsupported

EMBED = PoolingParams(task="embed")


def embed() -> EmbedPooler:
    return EmbedPooler([PoolingType.CLS], normalize=True, size=SIZE)


def classify() -> ClassifyPooler:
    return ClassifyPooler(PoolingType.CLS, linear(), activation="softmax")


def test_names_its_tasks_in_the_stable_order():
    pooler = Pooler({"plugin": embed(), "classify": classify(), "embed": embed()})
    assert pooler.supported_tasks == ("embed", "classify", "plugin")


@pytest.mark.parametrize("task", ["classify", None])
def test_refuses_another_task_and_lists_its_own(task: PoolingTask | None):
    with pytest.raises(InvalidRequest) as caught:
        Pooler({"embed": embed()}).verify(PoolingParams(task=task))
    assert str(caught.value) == why_unsupported(task, ["embed"])
    assert caught.value.param == "task"


def test_lets_the_task_check_its_own_params():
    whole = Pooler({"embed": embed(), "classify": classify()})
    assert whole.verify(EMBED) == "embed"
    with pytest.raises(InvalidRequest, match="only 8"):
        whole.verify(PoolingParams(task="embed", dimensions=SIZE + 1))
    with pytest.raises(InvalidRequest, match="not classify"):
        whole.verify(PoolingParams(task="classify", dimensions=2))


def test_pools_by_the_task_that_it_is_told():
    whole = Pooler({"embed": embed(), "classify": classify()})
    batch = whole_step([2, 3])
    assert [row.shape for row in whole("embed", batch, [EMBED] * 2).rows] == [torch.Size([SIZE])] * 2
    classified = whole("classify", batch, [PoolingParams(task="classify")] * 2)
    assert [row.shape for row in classified.rows] == [torch.Size([LABELS])] * 2
