"""`modules.json`: the chain of modules that sentence-transformers runs, and what each one's own folder says.

The file lists modules by dotted class name and folder. Since release 5.4 modules live under other dotted paths and
pooling is one `pooling_mode` instead of a flag for each mode. Chains that poolhook runs:

    Transformer -> [Pooling] -> [Dense ...] -> [Normalize]            a vector for a text
    Transformer -> [Dense ...] -> [MultiVectorMask] -> [Normalize]    a vector for each token (also PyLate's)
    Transformer -> SpladePooling                                      weights of words
    Transformer -> [LogitScore]                                       a score for a pair
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from poolhook.config import PoolingType
from poolhook.errors import ModelError, shorten
from poolhook.models.files import length, read_json, read_optional_json, typed

_MODES = {
    "cls": PoolingType.CLS,
    "max": PoolingType.MAX,
    "mean": PoolingType.MEAN,
    "mean_sqrt_len_tokens": PoolingType.MEAN_SQRT_LEN,
    "weightedmean": PoolingType.WEIGHTED_MEAN,
    "lasttoken": PoolingType.LAST,
}
# In the order in which the vectors of several modes are concatenated.
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_ALIASES = {"MLMTransformer": "Transformer", "pylate.models.Dense.Dense": "Dense"}
_WITHOUT_EFFECT = frozenset({"Dropout"})  # at inference
_ORDER = ("Transformer", "Pooling", "SpladePooling", "LogitScore", "Dense", "MultiVectorMask", "Normalize")
_ALONE = ("SpladePooling", "LogitScore")  # nothing but the transformer goes with these


@dataclass(frozen=True)
class Module:
    """An entry of `modules.json`.

    Args:
        name: the class, without the package.
        folder: relative to the model directory; mostly empty for the transformer.
    """

    name: str
    folder: str

    def config_file(self, path: Path) -> Path:
        """Where its configuration lies in the model directory `path`."""
        return path / self.folder / "config.json"


@dataclass(frozen=True)
class PoolingModule:
    """What a Pooling module's folder says.

    Args:
        methods: concatenated in this order.
        include_prompt: whether the tokens of an instruction are pooled with the text's.
    """

    methods: tuple[PoolingType, ...]
    include_prompt: bool


@dataclass(frozen=True)
class DenseLayer:
    """A linear layer behind the pooling, or on each token's vector.

    Args:
        path: the folder with its weights: `linear.weight`, maybe `linear.bias` and `residual.weight`.
        size: dimensions that come out.
        bias: there is a `linear.bias`.
        activation: the dotted name of a class of `torch.nn`.
        residual: the input, projected if it has another size, is added to the output.
    """

    path: Path
    size: int
    activation: str = "torch.nn.modules.linear.Identity"
    bias: bool = False
    residual: bool = False


@dataclass(frozen=True)
class Splade:
    """How a masked language model's logits become the weights of words.

    Args:
        strategy: over a text's tokens.
        log1p_twice: `log1p` is taken twice, as OpenSearch's models want it.
    """

    strategy: Literal["max", "sum"] = "max"
    log1p_twice: bool = False


def read_chain(path: Path, entries: list[dict[str, Any]]) -> tuple[Module, ...]:
    """The modules, after checking that poolhook runs such a chain.

    Raises:
        ModelError: a module that is not supported, or an order of modules, named.
    """
    file = path / "modules.json"
    chain = [_module(entry, file) for entry in entries]
    chain = [module for module in chain if module.name not in _WITHOUT_EFFECT]
    for module in chain:
        if module.name not in _ORDER:
            raise ModelError(
                f"{file} has a module {module.name!r}, which poolhook does not support. Supported: {', '.join(_ORDER)}."
            )
    names = [module.name for module in chain]
    # Normalize before the mask is the same as behind it.
    places = [_ORDER.index(name) for name in names if name != "MultiVectorMask"]
    repeated = len({name for name in names if name != "Dense"}) != len([name for name in names if name != "Dense"])
    crowded = any(name in names for name in _ALONE) and len(names) > 2
    if places != sorted(places) or names[:1] != ["Transformer"] or repeated or crowded:
        raise ModelError(
            f"{file} chains {' -> '.join(names) or 'nothing'}; poolhook runs Transformer, then in this order, each "
            "of them or not, Pooling, Dense, Normalize; or Dense, MultiVectorMask, Normalize; or SpladePooling; or "
            "LogitScore."
        )
    return tuple(chain)


def _module(entry: dict[str, Any], file: Path) -> Module:
    dotted, folder = typed(entry, "type", str, file), typed(entry, "path", str, file) or ""
    if dotted is None:
        raise ModelError(f"{file} has a module without a type: {shorten(entry)}.")
    # Files say where to read, but only among themselves.
    if PurePosixPath(folder).is_absolute() or {"..", "\\", "\0"} & {*folder.split("/"), *folder}:
        raise ModelError(f"{file} has a module in {shorten(folder)!r}, which is no folder within the model directory.")
    return Module(_class_name(dotted), folder)


def check_features(module: Module, path: Path, feature: str) -> None:
    """Raise `ModelError` unless a Dense or Normalize module reads and writes the vectors called `feature`."""
    file = module.config_file(path)
    config = read_optional_json(file)
    for key in ("module_input_name", "module_output_name"):
        name = config.get(key)
        if name is not None and name != feature:
            raise ModelError(f"{key} in {file} is {shorten(name)!r}; poolhook runs {module.name} on {feature} only.")


def _class_name(dotted: str) -> str:
    """`Pooling` for a class of sentence-transformers, wherever its releases kept it; others stay as they are."""
    # A class of the model's own may be called Transformer too and compute something else.
    package, _, rest = dotted.partition(".")
    name = rest.rpartition(".")[2] if package == "sentence_transformers" else dotted
    return _ALIASES.get(name, name)


def read_pooling(file: Path) -> PoolingModule:
    """What a Pooling module's configuration says.

    Raises:
        ModelError: it asks for a mode that is unknown.
    """
    config = read_json(file, missing="modules.json names it as the configuration of the Pooling module.")
    unknown = [key for key in config if key.startswith("pooling_mode_") and key not in _FLAGS and config[key]]
    flagged = [mode for flag, mode in _FLAGS.items() if typed(config, flag, bool, file)]
    modes = config.get("pooling_mode", flagged or "mean")
    modes = modes if isinstance(modes, list) else [modes]
    unknown += [str(mode) for mode in modes if not isinstance(mode, str) or mode not in _MODES]
    if not modes:
        unknown = ["nothing"]
    if unknown:
        raise ModelError(f"{file} asks for pooling {', '.join(unknown)}. Supported modes: {', '.join(_MODES)}.")
    include_prompt = typed(config, "include_prompt", bool, file) is not False
    return PoolingModule(tuple(_MODES[mode] for mode in modes), include_prompt)


def read_dense(module: Module, path: Path) -> DenseLayer:
    """What a Dense module's configuration says.

    Raises:
        ModelError: it does not say how many dimensions come out, or a value is of another kind.
    """
    file = module.config_file(path)
    config = read_json(file, missing="modules.json names it as the configuration of a Dense module.")
    size = length(config, "out_features", file)
    if size is None:
        raise ModelError(f"{file} must state out_features, a positive integer.")
    return DenseLayer(
        path / module.folder,
        size,
        typed(config, "activation_function", str, file) or "torch.nn.modules.activation.Tanh",
        typed(config, "bias", bool, file) is not False,
        bool(typed(config, "use_residual", bool, file)),
    )


def read_splade(file: Path) -> Splade:
    """What a SpladePooling module's configuration says.

    Raises:
        ModelError: it asks for a strategy or an activation that is unknown.
    """
    config = read_optional_json(file)
    strategy, activation = config.get("pooling_strategy", "max"), config.get("activation_function", "relu")
    if strategy not in ("max", "sum") or activation not in ("relu", "log1p_relu"):
        raise ModelError(
            f"{file} asks for pooling_strategy {strategy!r} and activation_function {activation!r}. "
            "Supported are max and sum, relu and log1p_relu."
        )
    return Splade(strategy, activation == "log1p_relu")


def read_logit_score(file: Path) -> tuple[int, ...]:
    """The token ids of a LogitScore module: of the false answer, if there is one, then of the true one."""
    config = read_json(file, missing="modules.json names it as the configuration of the LogitScore module.")
    false_id, true_id = config.get("false_token_id"), config.get("true_token_id")
    if type(true_id) is not int or (false_id is not None and type(false_id) is not int):
        raise ModelError(f"{file} must state true_token_id, a token id, and may state false_token_id.")
    return (true_id,) if false_id is None else (false_id, true_id)
