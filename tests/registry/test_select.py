"""A name selects one installed plugin, or an error says what could have been meant."""

from __future__ import annotations

import pytest

from distributions import Site
from poolhook.errors import ConfigError
from poolhook.registry import IO_PROCESSORS, WRAPPERS, select


def test_a_name_selects_the_plugin_of_that_name_in_its_group(site: Site):
    site.add("acme", io_processors={"search": "m:Search"}, wrappers={"search": "m:Wrapper"})
    assert select("search", IO_PROCESSORS).target == "m:Search"
    assert select("search", WRAPPERS).target == "m:Wrapper"


def test_a_name_that_two_distributions_bring_is_an_error_that_names_the_choices(site: Site):
    site.add("acme", io_processors={"search": "m:A"})
    site.add("globex", io_processors={"search": "m:G"})
    with pytest.raises(ConfigError, match=r"'search'.*'acme:search' or 'globex:search'"):
        select("search", IO_PROCESSORS)


@pytest.mark.parametrize("form", ["globex-tools:search", "Globex_Tools:search", "globex.tools:search"])
def test_distribution_and_name_say_which_is_meant(site: Site, form: str):
    site.add("acme", io_processors={"search": "m:A"})
    site.add("globex-tools", io_processors={"search": "m:G"})
    assert select(form, IO_PROCESSORS).target == "m:G"


def test_an_unknown_name_lists_what_is_installed_in_the_group(site: Site):
    site.add("acme", io_processors={"search": "m:A"}, wrappers={"audit": "m:W"})
    with pytest.raises(ConfigError) as caught:
        select("serach", IO_PROCESSORS)
    message = str(caught.value)
    assert "'serach'" in message
    assert "embed" in message
    assert "search" in message
    assert "audit" not in message
    assert "poolhook plugins list" in message


def test_a_distribution_that_does_not_bring_the_name_is_unknown(site: Site):
    site.add("acme", io_processors={"search": "m:A"})
    with pytest.raises(ConfigError, match="No plugin named 'globex:search'"):
        select("globex:search", IO_PROCESSORS)


def test_a_name_of_the_other_group_is_said_to_be_there(site: Site):
    site.add("acme", wrappers={"audit": "m:W"})
    with pytest.raises(ConfigError, match="'audit' is installed, but as one of wrappers, not io_processors"):
        select("audit", IO_PROCESSORS)


def test_where_nothing_is_installed_the_message_says_none():
    with pytest.raises(ConfigError, match="Installed: none"):
        select("audit", WRAPPERS, installed=())


def test_an_endless_name_gives_a_bounded_message():
    with pytest.raises(ConfigError) as caught:
        select("x" * 100_000, WRAPPERS, installed=())
    assert len(str(caught.value)) < 1000
