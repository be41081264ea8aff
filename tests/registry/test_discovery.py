"""Discovery lists what is installed from metadata alone, whatever state the packages are in."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from distributions import Site
from poolhook.registry import IO_PROCESSORS, WRAPPERS, PluginRef, installed_plugins


def found(distribution: str) -> list[PluginRef]:
    return [ref for ref in installed_plugins() if ref.distribution == distribution]


def test_the_built_in_processors_are_found_by_their_entry_points():
    names = {ref.name: ref for ref in found("poolhook")}
    assert names["embed"].target == "poolhook_builtin.embed:EmbedIOProcessor"
    assert names["embed"].group == IO_PROCESSORS


def test_a_reference_says_everything_without_an_import(site: Site):
    site.add(
        "acme-search",
        io_processors={"search": "acme.search:Search"},
        version="3.1",
        requires=["numpy", "poolhook<9,>=0.1"],
    )
    assert found("acme-search") == [
        PluginRef("search", IO_PROCESSORS, "acme.search:Search", "acme-search", "3.1", "poolhook<9,>=0.1", False)
    ]
    assert str(found("acme-search")[0]) == "'search' (acme-search 3.1, acme.search:Search)"


def test_a_plugin_whose_module_raises_is_still_listed_and_nothing_is_imported(site: Site):
    site.add("acme", wrappers={"boom": "acme_boom:Boom"}, modules={"acme_boom": "raise RuntimeError('imported')"})
    before = set(sys.modules)
    assert [ref.name for ref in found("acme")] == ["boom"]
    assert "acme_boom" not in set(sys.modules) - before


def test_discovery_leaves_torch_and_transformers_unloaded():
    program = (
        "import sys; from poolhook.registry import installed_plugins; assert installed_plugins();"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'poolhook_builtin')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_metadata_is_read_once_per_process(site: Site):
    assert installed_plugins() is installed_plugins()


def test_plugins_come_sorted_by_group_name_and_distribution(site: Site):
    site.add("zeta", io_processors={"b": "m:B", "a": "m:A"}, wrappers={"a": "m:W"})
    site.add("alpha", io_processors={"b": "m:B"})
    ours = [ref for ref in installed_plugins() if ref.distribution in ("zeta", "alpha")]
    assert [(ref.group, ref.name, ref.distribution) for ref in ours] == [
        (IO_PROCESSORS, "a", "zeta"),
        (IO_PROCESSORS, "b", "alpha"),
        (IO_PROCESSORS, "b", "zeta"),
        (WRAPPERS, "a", "zeta"),
    ]


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        (["poolhook>=0.1"], "poolhook>=0.1"),
        (["PoolHook >= 0.1"], "poolhook>=0.1"),
        (["poolhook[server]>=0.1"], "poolhook>=0.1"),
        (["poolhook"], "poolhook"),
        (["poolhook-extras>=2"], None),
        (["poolhook>=0.1; extra == 'serve'"], None),
        (["poolhook>=9; python_version < '3'", "poolhook>=0.1; python_version >= '3'"], "poolhook>=0.1"),
        (["poolhook>=0.1", "poolhook<2"], "poolhook<2,>=0.1"),
        (["poolhook>=!broken!", "poolhook>=0.1"], "poolhook>=0.1"),
        ([], None),
    ],
)
def test_the_requirement_on_poolhook_is_read_by_canonical_name_where_its_marker_holds(
    site: Site, requires: list[str], expected: str | None
):
    site.add("acme", wrappers={"w": "m:W"}, requires=requires)
    assert found("acme")[0].requires == expected


def test_an_editable_install_is_told_from_a_normal_one(site: Site):
    site.add("here", wrappers={"w": "m:W"}, editable=True)
    site.add("there", wrappers={"w": "m:W"})
    assert [found(name)[0].editable for name in ("here", "there")] == [True, False]


@pytest.mark.parametrize("origin", ["not json", "[]", '{"dir_info": null}', '{"url": "file:///x"}'])
def test_a_strange_direct_url_means_not_editable(site: Site, origin: str):
    site.add("acme", wrappers={"w": "m:W"})
    (site.path / "acme-1.2.dist-info" / "direct_url.json").write_text(origin)
    assert found("acme")[0].editable is False


def test_a_target_may_have_spaces_and_the_deprecated_extras(site: Site):
    site.add("acme", wrappers={"w": "acme.mod : Outer.Inner [fast]"})
    assert found("acme")[0].target == "acme.mod:Outer.Inner"


def test_the_copy_that_imports_would_find_shadows_a_later_one(site: Site, monkeypatch: pytest.MonkeyPatch):
    site.add("acme-plugin", wrappers={"old": "m:Old"}, version="1.0")
    first = Site(site.path.parent / "first")
    first.path.mkdir()
    monkeypatch.syspath_prepend(first.path)
    first.add("Acme_Plugin", wrappers={"new": "m:New"}, version="2.0")
    refs = [ref for ref in installed_plugins() if ref.distribution.lower().replace("_", "-") == "acme-plugin"]
    assert [(ref.name, ref.version) for ref in refs] == [("new", "2.0")]


DAMAGE = {
    "no METADATA at all": None,
    "no Name": "Metadata-Version: 2.1\nVersion: 1.2\n",
    "no Version": "Metadata-Version: 2.1\nName: damaged\n",
    "an empty METADATA": "",
    "bytes that are no text": b"Metadata-Version: 2.1\nName: damaged\nVersion: 1.2\n\xff\xfe",
}


@pytest.mark.parametrize("metadata", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_package_hides_no_other_and_is_reported_when_it_has_plugins(
    site: Site, metadata: str | bytes | None, caplog: pytest.LogCaptureFixture
):
    info = site.add_metadata("damaged", metadata)
    (info / "entry_points.txt").write_text(f"[{WRAPPERS}]\nlost = m:Lost\n")
    site.add("healthy", wrappers={"w": "m:W"})
    with caplog.at_level(logging.WARNING):
        assert [ref.name for ref in found("healthy")] == ["w"]
    assert "lost" not in {ref.name for ref in installed_plugins()}
    assert str(site.path) in caplog.text


def test_entry_points_that_can_not_be_parsed_hide_no_other_package(site: Site):
    info = site.add_metadata("damaged", "Metadata-Version: 2.1\nName: damaged\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{WRAPPERS}]\nno equals sign\n")
    site.add("healthy", wrappers={"w": "m:W"})
    assert [ref.name for ref in found("healthy")] == ["w"]


def test_a_half_removed_package_without_plugins_is_skipped_without_a_word(site: Site, caplog: pytest.LogCaptureFixture):
    site.add_metadata("~umpy", None)
    with caplog.at_level(logging.WARNING):
        assert found("poolhook")
    assert caplog.text == ""
