"""Specifies chat templates: where they come from, and that they render as in transformers."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from poolhook.errors import ConfigError, InvalidRequest
from poolhook.render import ChatTemplates
from tiny import edit_json, save_tokenizer

CHAT = (
    "{{ bos_token }}{% for m in messages %}{{ '<' + m.role + '>' + m['content'] | trim + eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
PAIRS = (
    "{% set query = messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first %}"
    "{% set document = messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first %}"
    "<Query>: {{ query }}\n<Document>: {{ document }}\nRelevant:"
)
SEP = {
    "__type": "AddedToken",
    "content": "[SEP]",
    "lstrip": False,
    "normalized": False,
    "rstrip": False,
    "single_word": False,
    "special": True,
}
MESSAGES = [{"role": "user", "content": " hello "}, {"role": "assistant", "content": "there"}]
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    save_tokenizer(tmp_path)
    edit_json(tmp_path / "tokenizer_config.json", bos_token="[CLS]", eos_token=SEP)
    return tmp_path


def load(directory: Path, given: str | None = None) -> ChatTemplates:
    templates = ChatTemplates.from_directory(directory, given)
    assert templates is not None
    return templates


class TestRendering:
    @pytest.mark.parametrize("add", [True, False])
    @pytest.mark.parametrize(
        "template",
        [CHAT, "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m | tojson }}{% endfor %}"],
    )
    def test_is_that_of_transformers(self, directory: Path, template: str, add: bool):
        edit_json(directory / "tokenizer_config.json", chat_template=template)
        theirs = AutoTokenizer.from_pretrained(directory).apply_chat_template(
            MESSAGES, tokenize=False, add_generation_prompt=add
        )
        assert load(directory).render(MESSAGES, add_generation_prompt=add) == theirs

    def test_in_many_threads_gives_each_its_own(self):
        templates = ChatTemplates(CHAT, {"bos_token": "", "eos_token": ""})
        with ThreadPoolExecutor(8) as pool:
            texts = pool.map(lambda n: templates.render([{"role": "user", "content": str(n)}]), range(300))
            assert list(texts) == [f"<user>{n}\n" for n in range(300)]

    @pytest.mark.parametrize(
        ("template", "said"),
        [
            ("{{ raise_exception('roles must alternate') }}", "TemplateError: roles must alternate"),
            ("{{ messages[5].content }}", "UndefinedError"),
            ("{{ 1 + 'a' }}", "TypeError"),
            ("{% if %}", "TemplateSyntaxError"),
            ("{{ raise_exception('x' * 10**6) }}", "TemplateError: xxx"),
            ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ],
    )
    def test_that_fails_is_the_senders_mistake_and_says_why(self, template: str, said: str):
        with pytest.raises(InvalidRequest, match="chat template can't take these messages: ") as caught:
            ChatTemplates(template).render(HELLO)
        assert said in str(caught.value)
        assert len(str(caught.value)) < 1000


class TestTheTemplateOfADirectory:
    def test_is_none_where_there_is_none(self, directory: Path, tmp_path: Path):
        assert ChatTemplates.from_directory(directory) is None
        assert ChatTemplates.from_directory(tmp_path / "empty") is None

    @pytest.mark.parametrize(
        "files",
        [
            {"tokenizer_config.json": "right"},
            {
                "tokenizer_config.json": [
                    {"name": "tools", "template": "wrong"},
                    {"name": "default", "template": "right"},
                ]
            },
            {"chat_template.jinja": "right", "tokenizer_config.json": "wrong"},
            {"chat_template.jinja": "right", "additional_chat_templates/tools.jinja": "wrong"},
        ],
    )
    def test_is_the_one_that_transformers_takes(self, directory: Path, files: dict[str, Any]):
        save(directory, files)
        assert load(directory).render(HELLO) == "right"
        assert AutoTokenizer.from_pretrained(directory).apply_chat_template(HELLO, tokenize=False) == "right"

    @pytest.mark.parametrize(
        "files",
        [
            {"tokenizer_config.json": [{"name": "tools", "template": "one"}, {"name": "rag", "template": "two"}]},
            {"tokenizer_config.json": ["one", {"name": "default"}]},
            {"additional_chat_templates/tools.jinja": "one"},
        ],
    )
    def test_is_none_where_no_default_is_among_several(self, directory: Path, files: dict[str, Any]):
        save(directory, files)
        assert ChatTemplates.from_directory(directory) is None


class TestATemplateThatTheOperatorGives:
    def test_may_be_the_name_of_one_of_the_models(self, directory: Path):
        save(directory, {"chat_template.jinja": "default", "additional_chat_templates/rerank.jinja": "right"})
        assert load(directory, "rerank").render(HELLO) == "right"

    def test_may_be_a_file(self, directory: Path):
        save(directory, {"chat_template.jinja": "wrong", "mine.txt": "{{ bos_token }}right"})
        assert load(directory, str(directory / "mine.txt")).render(HELLO) == "[CLS]right"

    def test_may_be_the_template_itself(self, directory: Path):
        save(directory, {"chat_template.jinja": "wrong"})
        assert load(directory, "{{ messages[0].content }}{{ eos_token }}").render(HELLO) == "hello[SEP]"

    @pytest.mark.parametrize("given", ["{% if %}", "{{ x | nothing }}", "{% for %}{{"])
    def test_is_refused_at_start_where_it_is_none(self, directory: Path, given: str):
        with pytest.raises(ConfigError, match="The chat template is not valid: Template"):
            ChatTemplates.from_directory(directory, given)

    @pytest.mark.parametrize("given", ["nowhere.jinja", "x" * 5000, "nul\0"])
    def test_is_refused_at_start_where_there_is_no_such_file(self, directory: Path, given: str):
        save(directory, {"chat_template.jinja": "one"})
        with pytest.raises(ConfigError, match=r"is no template and no readable file.*it has default"):
            ChatTemplates.from_directory(directory, given)


class TestPairs:
    def test_are_messages_of_two_roles(self):
        assert ChatTemplates(PAIRS).render_pair("a", "b") == "<Query>: a\n<Document>: b\nRelevant:"

    @pytest.mark.parametrize(
        ("template", "takes"),
        [
            (PAIRS, True),
            (CHAT, False),
            ("{# of a query and a document #}" + CHAT, True),
            ("{% for m in messages %}{{ m.content[0].text }}{% endfor %}", False),
            ("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", False),
            ("{{ messages[0].content }}", False),
            ("{{ messages[1].content }}", False),
            (PAIRS + "{{ document }}", False),
            ("{{ raise_exception('only users') }}", False),
            ("{% if %}", False),
        ],
    )
    def test_are_taken_where_both_come_out_once_and_the_template_names_their_roles(self, template: str, takes: bool):
        assert ChatTemplates(template, {"bos_token": "", "eos_token": ""}).takes_pairs is takes

    def test_are_taken_by_any_template_that_the_operator_gives_for_them(self, directory: Path):
        given = "{{ messages[0].content }}: {{ messages[1].content }}"
        assert load(directory, given).takes_pairs
        assert not ChatTemplates(given).takes_pairs


def save(directory: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        file = directory / name
        file.parent.mkdir(exist_ok=True)
        if name == "tokenizer_config.json":
            config = json.loads(file.read_text())
            file.write_text(json.dumps({**config, "chat_template": content}))
        else:
            file.write_text(content)
