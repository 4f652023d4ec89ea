"""What is taken from elsewhere is named exactly: actions by commit, images by digest, dependencies within bounds."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONTAINERFILES = sorted((ROOT / "examples").rglob("Containerfile"))


@pytest.mark.skipif(not WORKFLOWS, reason="a source distribution has no workflows")
def test_actions_are_named_by_commit_and_may_only_read() -> None:
    """A tag can be moved by whoever owns it; a checkout leaves no token behind for what the job runs."""
    for text in (path.read_text() for path in WORKFLOWS):
        uses = re.findall(r"uses: *(\S+)(.*)", text)
        assert uses and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action, _ in uses), uses
        assert all(re.fullmatch(r"  # v\d+\.\d+\.\d+", version) for _, version in uses), uses
        assert re.findall(r"^permissions: (.*)$", text, re.M) == ["{contents: read}"]
        assert text.count("persist-credentials: false") == text.count("actions/checkout@")
        assert not re.search(r"pipx run \S+==\S*\*", text)


@pytest.mark.skipif(not CONTAINERFILES, reason="without the examples")
def test_images_are_named_by_digest() -> None:
    """What was built from is the same at the next build."""
    for path in CONTAINERFILES:
        images = re.findall(r"^FROM (\S+)", path.read_text(), re.M)
        assert images and all(re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image) for image in images), images


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="without the project's own file")
def test_dependencies_have_an_upper_bound() -> None:
    """A next major release, or a next minor one of what private parts are used of, is tried before it is allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(d for name in ("proxy", "transport", "redis", "mcp") for d in extras[name])]
    assert not [d for d in wanted if not re.search(r",<\d", d)]
    private = {re.match(r"\w+", d)[0]: d for d in extras["proxy"]}
    for name in ("uvicorn", "httptools", "httpcore2"):
        lowest, above = re.search(r">=([\d.]+),<([\d.]+)", private[name]).groups()
        major, minor = map(int, lowest.split("."))
        assert above == f"{major}.{minor + 1}", private[name]
