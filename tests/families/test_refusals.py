"""What can't be served right is refused when it loads, with a reason: no model answers wrongly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from families.making import save, tiny_model
from families.refusals import REFUSALS, Refusal
from families.serving import ANSWERS, served
from poolhook.errors import ModelError


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.what)
def test_is_refused_with_the_reason(refusal: Refusal, tmp_path: Path) -> None:
    save(tiny_model(refusal.family, refusal.head, refusal.values), tmp_path)
    overrides = {"classifier_from_token": ANSWERS} if refusal.head == "causal_lm" else None
    with pytest.raises(ModelError, match=re.escape(refusal.message)), served(tmp_path, overrides):
        pass
