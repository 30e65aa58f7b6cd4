"""Where the repository's files are, and which of them are pages."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
