"""Specifies `Frame`: what a tokenizer's post-processor puts around one text, or around and between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, processors

from poolhook.errors import ModelError
from poolhook.render import TextTokenizer
from tiny import edit_json, save_tokenizer

SPECIALS = [("[CLS]", 2), ("[SEP]", 3)]
PROCESSORS: dict[str, Any] = {
    "none": None,
    "bytes": processors.ByteLevel(),
    "bert": processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
    "roberta": processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)),
    "template": processors.TemplateProcessing(
        single="[CLS]:2 $A:0", pair="$A:1 [SEP]:1 $B:2 [SEP]:0 [CLS]:3", special_tokens=SPECIALS
    ),
    "sequence": processors.Sequence(
        [
            processors.ByteLevel(),
            processors.TemplateProcessing(single="$A [SEP]", pair="$A [SEP] $B:1 [SEP]:1", special_tokens=SPECIALS),
        ]
    ),
}


def backend_with(directory: Path, processor: Any) -> Tokenizer:
    save_tokenizer(directory)
    edit_json(directory / "tokenizer.json", post_processor=None)
    backend = Tokenizer.from_file(str(directory / "tokenizer.json"))
    if processor is not None:
        backend.post_processor = processor
    return backend


@pytest.mark.parametrize("specials", [True, False])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_frames_as_the_post_processor_does(tmp_path: Path, processor: str, specials: bool):
    backend = backend_with(tmp_path, PROCESSORS[processor])
    ours = TextTokenizer(backend)
    one, two = ours.frame(add_special_tokens=specials), ours.pair_frame(add_special_tokens=specials)
    for first, second in ((4, 1), (1, 0), (0, 3), (0, 0)):
        a, b = " ".join(["w1"] * first), " ".join(["w2"] * second)
        single, pair = backend.encode(a, add_special_tokens=specials), backend.encode(a, b, add_special_tokens=specials)
        assert one.around([5] * first) == single.ids
        assert (one.type_ids(first) or [0] * len(single.ids)) == single.type_ids
        assert two.around([5] * first, [6] * second) == pair.ids
        assert (two.type_ids(first, second) or [0] * len(pair.ids)) == pair.type_ids


def test_has_no_segments_where_the_model_is_to_see_none(tmp_path: Path):
    ours = TextTokenizer(backend_with(tmp_path, PROCESSORS["bert"]), segments=False)
    assert ours.pair_frame(add_special_tokens=True).type_ids(1, 1) is None


@pytest.mark.parametrize("pair", ["$B $A", "$A $B $A"])
def test_refuses_a_template_that_swaps_or_repeats_texts(tmp_path: Path, pair: str):
    ours = TextTokenizer(
        backend_with(tmp_path, processors.TemplateProcessing(single="$A", pair=pair, special_tokens=[]))
    )
    assert ours.frame(add_special_tokens=True).around([5]) == [5]
    with pytest.raises(ModelError, match="does not put each text once and in order"):
        ours.pair_frame(add_special_tokens=True)
