"""Loading imports what was selected, after a check of versions, and says in one message why it can't."""

from __future__ import annotations

import importlib
import logging
import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from distributions import Site
from poolhook.errors import PluginLoadError
from poolhook.registry import WRAPPERS, PluginRef, load, select

loading = importlib.import_module("poolhook.registry.load")  # the package has a function of that name


def ref_of(target: str, requires: str | None = "poolhook") -> PluginRef:
    return PluginRef("audit", WRAPPERS, target, "acme-audit", "1.2", requires)


def test_the_selected_plugin_is_imported_and_no_other(site: Site):
    site.add(
        "acme",
        wrappers={"good": "acme_good:Outer.Inner", "bad": "acme_bad:Bad"},
        modules={"acme_good": "class Outer:\n    class Inner: pass", "acme_bad": "raise RuntimeError"},
    )
    assert load(select("good", WRAPPERS)).__qualname__ == "Outer.Inner"  # type: ignore[attr-defined]
    assert "acme_bad" not in sys.modules


BROKEN = {
    "ImportError": ("import a_package_that_is_missing", ModuleNotFoundError, "a_package_that_is_missing"),
    "SyntaxError": ("def broken(:", SyntaxError, "invalid syntax"),
    "SystemExit": ("import sys; sys.exit('no licence')", SystemExit, "no licence"),
    "an exception of its own": ("raise RuntimeError('no GPU')", RuntimeError, "no GPU"),
    "a missing attribute": ("Audit = None", AttributeError, "Auditor"),
}


@pytest.mark.parametrize(("source", "kind", "cause"), BROKEN.values(), ids=BROKEN.keys())
def test_a_failing_import_is_one_error_that_names_everything_and_keeps_its_cause(
    site: Site, source: str, kind: type[BaseException], cause: str
):
    site.add("acme-audit", wrappers={"audit": "acme_audit:Auditor"}, modules={"acme_audit": source})
    with pytest.raises(PluginLoadError) as caught:
        load(select("audit", WRAPPERS))
    message = str(caught.value)
    for part in ("'audit'", "acme-audit 1.2", "acme_audit:Auditor", kind.__name__, cause):
        assert part in message
    assert isinstance(caught.value.__cause__, kind)
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


def test_a_user_who_presses_ctrl_c_during_an_import_is_heard(site: Site):
    site.add("acme", wrappers={"w": "acme_slow:W"}, modules={"acme_slow": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        load(select("w", WRAPPERS))


@pytest.mark.parametrize(
    ("ours", "requires", "fits"),
    [
        ("1.4", "poolhook>=1,<2", True),
        ("2.0", "poolhook>=1,<2", False),
        ("0.9", "poolhook>=1,<2", False),
        ("1.4", "poolhook", True),
        # A development version is what the release will be, on either end of a range.
        ("1.0.dev3+g123", "poolhook>=1.0", True),
        ("2.0.dev1", "poolhook>=1,<2", False),
        ("2.0rc1", "poolhook>=1,<2", False),
        ("1.4.post1", "poolhook==1.4", True),
        ("1!1.0", "poolhook<2", False),
    ],
)
def test_the_version_is_compared_by_its_base(
    site: Site, monkeypatch: pytest.MonkeyPatch, ours: str, requires: str, fits: bool
):
    monkeypatch.setattr(loading, "__version__", ours)
    ref = ref_of("collections:OrderedDict", requires)
    if fits:
        assert load(ref).__name__ == "OrderedDict"  # type: ignore[attr-defined]
    else:
        with pytest.raises(PluginLoadError) as caught:
            load(ref)
        for part in ("'audit'", "acme-audit 1.2", requires, ours):
            assert part in str(caught.value)


@given(release=st.lists(st.integers(0, 99), min_size=1, max_size=3), build=st.sampled_from(["", ".dev7", "rc1", "a2"]))
def test_a_plugin_made_for_the_release_takes_its_development_versions(release: list[int], build: str):
    number = ".".join(map(str, release))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "__version__", str(Version(number + build)))
        assert load(ref_of("collections:OrderedDict", f"poolhook=={number}"))


def test_a_version_that_does_not_fit_is_found_out_before_the_import(site: Site):
    site.add("acme", wrappers={"w": "acme_new:W"}, modules={"acme_new": "x = 1"}, requires=["poolhook>=999"])
    with pytest.raises(PluginLoadError, match="poolhook>=999"):
        load(select("w", WRAPPERS))
    assert "acme_new" not in sys.modules


def test_a_plugin_that_declares_no_requirement_loads_with_a_warning(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        load(ref_of("collections:OrderedDict", requires=None))
    assert "'audit' (acme-audit 1.2, collections:OrderedDict) declares no requirement on poolhook" in caplog.text


def test_poolhook_itself_needs_no_requirement_on_itself(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        load(PluginRef("embed", WRAPPERS, "collections:OrderedDict", "poolhook", "1.0"))
    assert caplog.text == ""
