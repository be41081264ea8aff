"""`poolhook plugins`: what is installed, without importing any of it."""

from __future__ import annotations

from cyclopts import App

from poolhook.registry import installed_plugins

app = App(name="plugins", help="Look at installed plugins.")


@app.command(name="list")
def list_plugins() -> None:
    """List every installed plugin: its name, kind and package. Nothing is imported."""
    header = ("NAME", "KIND", "PACKAGE", "VERSION", "OBJECT", "REQUIRES")
    rows = [
        (
            ref.name,
            ref.group.removeprefix("poolhook."),
            ref.distribution + (" (editable)" if ref.editable else ""),
            ref.version,
            ref.target,
            ref.requires or "-",
        )
        for ref in installed_plugins()
    ]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
