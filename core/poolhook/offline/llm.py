"""`LLM`: a pooling model in a Python program. The name is vLLM's, so that programs written for its pooling side fit."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError
from tqdm import tqdm

from poolhook.config import EngineConfig, PoolerConfig
from poolhook.errors import ConfigError, InvalidRequest, describe_problems
from poolhook.outputs import EmbeddingRequestOutput, PoolingOutput, PoolingRequestOutput
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.plugins import DataRequest, PoolingRequest, PromptsRequest
from poolhook.runtime import Answer, RuntimeConfig, build_runtime, run_offline
from poolhook.tasks import POOLING_TASKS, PoolingTask

Model = TypeVar("Model", bound=BaseModel)
Params = PoolingParams | Sequence[PoolingParams]


class LLM:
    """A pooling model, loaded. Several threads may use one.

    Args:
        model: a model directory, a hub id, or `demo`.
        pooler_config: overrides of what the model says about pooling.
        io_processor_plugin: the IO processors that serve task `plugin`, by name; None takes those that the model's
            `config.json` names.
        wrappers: wrappers to put around every route, by name, the first outermost.
        plugin_config: options for each plugin, by its name.
        engine_options: the fields of `EngineConfig`, such as `device` and `dtype`.

    Raises:
        ModelError: the model can't be found, read or loaded.
        ConfigError: an option is wrong, or the task is not supported.
        PluginError: a selected plugin is broken.
    """

    def __init__(
        self,
        model: str,
        *,
        pooler_config: PoolerConfig | Mapping[str, Any] | None = None,
        io_processor_plugin: str | Sequence[str] | None = None,
        wrappers: Sequence[str] = (),
        plugin_config: Mapping[str, Mapping[str, Any]] | None = None,
        **engine_options: Any,
    ) -> None:
        if isinstance(io_processor_plugin, str):
            io_processor_plugin = [io_processor_plugin]
        self._runtime = build_runtime(
            RuntimeConfig(
                model=str(model),
                pooler_config=_validated(PoolerConfig, pooler_config or {}, ConfigError),
                engine_config=_validated(EngineConfig, engine_options, ConfigError),
                io_processor_plugins=io_processor_plugin,
                wrappers=wrappers,
                plugin_config=plugin_config or {},
            )
        )
        # Also at interpreter exit, and when the last reference goes.
        self._close = weakref.finalize(self, self._runtime.close)

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that `encode` can be asked for."""
        return self._runtime.processors.supported_tasks

    def embed(
        self,
        prompts: Any,
        *,
        pooling_params: Params | None = None,
        prompt_name: str | None = None,
        tokenization_kwargs: TokenizationParams | Mapping[str, Any] | None = None,
        use_tqdm: bool = True,
    ) -> list[EmbeddingRequestOutput]:
        """Embed prompts.

        Args:
            prompts: one prompt or a list: texts, lists of token ids, or dicts `{"prompt": ...}` and
                `{"prompt_token_ids": ...}`.
            pooling_params: one for all, or one for each prompt.
            prompt_name: which of the model's own prompts (such as `query`) to put before each text.
            tokenization_kwargs: the fields of `TokenizationParams`, such as `truncate_prompt_tokens`.
            use_tqdm: show a progress bar.

        Returns:
            One output for each prompt, in their order; a single prompt gives a list of one.

        Raises:
            InvalidRequest: a prompt or parameter is wrong; the message says which and what is allowed.
            EngineError: the engine could not compute one of them.
        """
        request = PromptsRequest(
            task="embed",
            prompts=prompts,
            prompt_name=prompt_name,
            params=_params(pooling_params),
            tokenization=_tokenization(tokenization_kwargs),
        )
        return [EmbeddingRequestOutput.of(pooled) for pooled in self._run(request, use_tqdm).value]

    def encode(
        self,
        prompts: Any,
        *,
        pooling_task: PoolingTask | None = None,
        pooling_params: Params | None = None,
        prompt_name: str | None = None,
        tokenization_kwargs: TokenizationParams | Mapping[str, Any] | None = None,
        use_tqdm: bool = True,
    ) -> list[PoolingRequestOutput[Any]]:
        """Run a pooling task and return what its route answers.

        Args:
            prompts: as for `embed`; or `{"data": ...}`, with `"plugin"` if several were chosen, for an IO processor.
            pooling_task: the task; None is the one that is served, or `plugin` for `{"data": ...}`.
            pooling_params: one for all, or one for each prompt.
            prompt_name: as for `embed`.
            tokenization_kwargs: as for `embed`.
            use_tqdm: show a progress bar.

        Returns:
            One output for each prompt, in their order; for an IO processor one output, whose `outputs` is its answer.

        Raises:
            InvalidRequest: the request can't be served as it stands; the message says how to ask.
            EngineError: the engine could not compute it.
            PluginError: a plugin failed.
        """
        if pooling_task is not None and pooling_task not in POOLING_TASKS:
            raise InvalidRequest(
                f"pooling_task is {pooling_task!r}. Supported tasks: {', '.join(self.supported_tasks)}.",
                param="pooling_task",
            )
        common: dict[str, Any] = {
            "task": pooling_task,
            "params": _params(pooling_params),
            "tokenization": _tokenization(tokenization_kwargs),
        }
        if isinstance(prompts, Mapping) and "data" in prompts:
            unknown = sorted(set(prompts) - {"data", "plugin"})
            if unknown:
                raise InvalidRequest(f"{{'data': ...}} takes no {', '.join(map(str, unknown))}; only data and plugin.")
            answer = self._run(DataRequest(data=prompts["data"], plugin=prompts.get("plugin"), **common), use_tqdm)
            return [PoolingRequestOutput(answer.request_id, answer.value, ())]
        request = PromptsRequest(prompts=prompts, prompt_name=prompt_name, **common)
        outputs: list[PoolingRequestOutput[Any]] = self._run(request, use_tqdm).value
        return outputs

    def close(self) -> None:
        """Stop the engine and shut the plugins down. Closing twice is harmless."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, request: PoolingRequest, use_tqdm: bool) -> Answer:
        if not use_tqdm:
            return run_offline(self._runtime, request)
        # Nothing is shown for what takes no time, nor where nobody looks (disable=None: no terminal).
        with tqdm(desc="Pooling", unit="prompt", leave=False, dynamic_ncols=True, delay=0.5, disable=None) as bar:

            def watch(futures: Sequence[Future[PoolingOutput]]) -> None:
                bar.total = len(futures)
                for future in futures:
                    future.add_done_callback(lambda _: bar.update())

            return run_offline(self._runtime, request, watch)


def _params(given: Params | None) -> Params:
    if given is None:
        return PoolingParams()
    if isinstance(given, PoolingParams):
        return given
    if isinstance(given, list | tuple) and all(isinstance(params, PoolingParams) for params in given):
        return given
    raise InvalidRequest(
        f"pooling_params must be a PoolingParams or a list of them, not {type(given).__name__}.",
        param="pooling_params",
    )


def _tokenization(given: TokenizationParams | Mapping[str, Any] | None) -> TokenizationParams:
    return _validated(TokenizationParams, given or {}, InvalidRequest)


def _validated(model: type[Model], given: Model | Mapping[str, Any], error_type: type[Exception]) -> Model:
    """`given` as `model`, or an error that names the option and what the options are."""
    if isinstance(given, model):
        return given
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        text, _ = describe_problems(error.errors(include_url=False))
        raise error_type(f"{text}. {model.__name__} takes {', '.join(model.model_fields)}.") from error
