"""The pages speak of what is there: a room, hook, error, option, field or path that is renamed makes its page fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import transformers
import yaml

from markdown_pages import PAGES, blocks_of
from plugins_fixture import PLUGIN_TEMPLATE, REPOSITORY
from poolhook import PoolerConfig, PoolingParams, TokenizationParams, __version__, errors
from poolhook.plugins.hookspecs import ANSWER_STAGES, HOOKS
from poolhook.registry import GROUPS
from poolhook.runtime import RuntimeConfig, build_runtime
from poolhook.serving import build_app
from poolhook.tasks import POOLING_TASKS, SCORE_TYPES
from servers import COMMAND

DOCS = REPOSITORY / "docs"
EVERY_PAGE = [*PAGES, REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "CHANGELOG.md"]
COMING_FROM = DOCS / "coming-from.md"


def prose(page: Path) -> str:
    """The page without its blocks, and without the names of other projects: the first column of their tables."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"^\|[^|]*\|", "|", text, flags=re.M) if page == COMING_FROM else text


PROSE = {page: prose(page) for page in EVERY_PAGE}
QUOTED = {page: set(re.findall(r"`([^`\n]+)`", text)) for page, text in PROSE.items()}
EVERY_QUOTED = set().union(*QUOTED.values())
SOURCES = [*(REPOSITORY / "core").rglob("*.py"), *(PLUGIN_TEMPLATE / "src").rglob("*.py")]
EXAMPLES = [block.code for page in PAGES for block in blocks_of(page) if block.language == "python"]
CODE = "\n".join([*(path.read_text() for path in SOURCES), *EXAMPLES])
COMMANDS = ("embed", "classify", "encode", "score", "rerank", "serve", "info", "plugins")
ERRORS = {
    name: error
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, errors.PoolhookError)
}


def rows(heading: str, page: str = "architecture.md") -> list[list[str]]:
    """The cells of the first table under `heading`, less its head."""
    section = (DOCS / page).read_text().split(f"# {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, flags=re.M)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_table_of_rooms_is_the_import_contract() -> None:
    contract = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    layers = [set(layer.split(" | ")) - {"_version"} for layer in contract["layers"]]
    listed = [{room.removeprefix("poolhook.") for room in ticked(row[0])} for row in rows("The rooms")]
    # The vocabulary takes several layers of the contract and one row of the table.
    plain_data = listed[-1]
    assert listed[:-1] == [layer for layer in layers if not layer & plain_data]
    assert plain_data == set().union(*(layer for layer in layers if layer & plain_data))


def test_the_table_of_hooks_is_the_contract() -> None:
    listed = {ticked(row[0])[0]: row for row in rows("The hooks")}
    assert list(listed) == list(HOOKS)
    for name, hook in HOOKS.items():
        arguments = hook.__code__.co_varnames[1 : hook.__code__.co_argcount]
        assert tuple(ticked(listed[name][1])) == arguments
        assert (listed[name][3] == "the processor") == (name in ANSWER_STAGES)


def test_the_table_of_errors_is_the_tree() -> None:
    listed = {ticked(row[0])[0]: row[2] for row in rows("Errors")}
    assert set(listed) == set(ERRORS) - {"PoolhookError"}
    for name, http in listed.items():
        starts_only = http == "at start"
        assert starts_only == issubclass(ERRORS[name], errors.ConfigError | errors.PluginLoadError)
        if not starts_only:
            assert str(int(ERRORS[name].status)) in http


@pytest.mark.parametrize(
    "name", sorted(name for name in EVERY_QUOTED if re.fullmatch(r"poolhook(_builtin)?(\.\w+)+", name))
)
def test_a_dotted_name_can_be_imported(name: str) -> None:
    if name in GROUPS:
        return
    module, _, attribute = name.rpartition(".")
    assert hasattr(import_module(module), attribute) or import_module(name)


@pytest.mark.parametrize("name", sorted(n for n in EVERY_QUOTED if re.fullmatch(r"([A-Z][a-z]+\w*){1,}", n)))
def test_a_class_name_is_a_name_of_the_code(name: str) -> None:
    """A class of ours, one that a model's files name, or one of transformers."""
    of_the_code = re.search(rf"^(class {name}\b|{name} = )|\"{name}\"", CODE, flags=re.M)
    assert of_the_code or hasattr(transformers, name)


def test_the_table_of_tasks_has_them_all_in_their_order() -> None:
    assert [ticked(row[0]) for row in rows("Tasks", "tasks.md")] == [[task] for task in POOLING_TASKS]


def test_the_table_of_score_types_says_what_makes_them_possible() -> None:
    table = [(ticked(row[1])[0], ticked(row[0])[0]) for row in rows("Scores and reranking", "tasks.md")]
    assert sorted(table) == sorted(SCORE_TYPES.items())


def test_the_table_of_what_a_request_may_ask_is_its_params() -> None:
    listed = [ticked(row[0])[0] for row in rows("What a request may ask", "tasks.md")]
    assert listed == [*PoolingParams.model_fields, *TokenizationParams.model_fields]


def test_the_table_of_what_an_operator_may_set_is_the_pooler_config() -> None:
    listed = [name for row in rows("What the operator may set", "tasks.md") for name in ticked(row[0])]
    assert listed == list(PoolerConfig.model_fields)


def test_what_others_call_it_leads_to_names_that_are_here() -> None:
    columns = [cell for line in PROSE[COMING_FROM].splitlines() if line.startswith("|") for cell in ticked(line)]
    names = {name for cell in columns for name in re.findall(r"[a-z]+(?:_[a-z0-9]+)+", cell)}
    assert names >= {"truncate_prompt_tokens", "use_activation", "hf_overrides"}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", CODE)] == []


@pytest.mark.parametrize("heading", ["vLLM", "sentence-transformers", "text-embeddings-inference", "infinity"])
def test_every_row_of_what_others_call_it_has_an_answer(heading: str) -> None:
    for row in rows(heading, COMING_FROM.name):
        assert len(row) == 2
        assert all(row)


def test_every_entry_point_group_is_explained_and_no_other() -> None:
    text = (DOCS / "writing-a-plugin.md").read_text()
    assert set(re.findall(r"poolhook\.(?:io_processors|wrappers|models|routers)", text)) == set(GROUPS)


def test_every_option_on_the_pages_exists() -> None:
    shown = {
        option
        for page in EVERY_PAGE
        for command in re.findall(rf"poolhook (?:{'|'.join(COMMANDS)})[^\n`]*", page.read_text())
        for option in re.findall(r"(?<=\s)--[a-z][\w.-]*", command)
    }
    shown |= {match for quoted in EVERY_QUOTED for match in re.findall(r"^--[a-z][\w.-]*", quoted)}
    # As JSON, all options below it at once.
    shown -= {"--pooler-config"}
    env = {**os.environ, "COLUMNS": "400"}
    known = "".join(
        subprocess.run([*COMMAND, command, "--help"], env=env, capture_output=True, text=True, check=True).stdout
        for command in COMMANDS
    )
    assert shown <= {*re.findall(r"--[a-z][\w.-]*", known), "--help"}
    assert {"--io-processor-plugin", "--output", "--load"} <= shown


def test_every_path_on_the_pages_is_served(tiny_model: Callable[..., Path]) -> None:
    runtime = build_runtime(RuntimeConfig(model=str(tiny_model("bert"))))
    served = {getattr(route, "path", "") for route in build_app(runtime).routes}
    runtime.close()
    named = {quoted for quoted in EVERY_QUOTED if re.fullmatch(r"/[\w/]+", quoted)}
    assert named <= served
    assert named >= {path for path in served if "docs" not in path and "openapi" not in path and "redoc" not in path}


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", PROSE[page]):
        file, _, anchor = target.partition("#")
        if "://" in target:
            continue
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), flags=re.M)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, target


def test_every_make_target_on_the_pages_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), flags=re.M))
    pages = "\n".join(page.read_text() for page in EVERY_PAGE)
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", pages, flags=re.M))
    assert {"demo", "test", "lint"} <= named <= targets


def test_the_sites_navigation_has_every_page() -> None:
    site = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text())
    assert sorted(page for entry in site["nav"] for page in entry.values()) == sorted(p.name for p in DOCS.glob("*.md"))


def test_the_changelog_begins_with_this_version() -> None:
    assert re.findall(r"^## \[([^\]]+)\]", (REPOSITORY / "CHANGELOG.md").read_text(), flags=re.M)[0] == __version__


def test_the_demo_program_shows_embeddings_and_the_plugin(best_sentence_installed: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(best_sentence_installed), "HF_HUB_OFFLINE": "1"}
    demo = [sys.executable, str(REPOSITORY / "examples" / "demo.py")]
    shown = subprocess.run(demo, env=env, capture_output=True, text=True, check=True)
    assert "packed" in shown.stdout.splitlines()[0]
    assert "best-sentence (poolhook-best-sentence 0.1.0)" in shown.stdout.splitlines()[0]
    table = [line.split() for line in shown.stdout.splitlines() if re.match(r"\d ", line)]
    for row, cells in enumerate(table):
        assert cells[-len(table) :][row] == "1.00"
    assert "A fishing boat with three men aboard loses its mast.  (sentence 2" in shown.stdout
    assert shown.stderr == ""
