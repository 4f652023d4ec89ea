"""Which paths a call names, however it spells them, and which of them a name, a folder or a glob holds."""

import time
from typing import Any

import pytest

from cg.sweep.judging.paths import command_paths, is_same_file, is_under, named_paths, normal


@pytest.mark.parametrize(
    ("spelled", "is_normal"),
    [
        ("src//x.py", "src/x.py"),
        ("./src/./x.py/", "src/x.py"),
        ("src/y/../x.py", "src/x.py"),
        ("../../src/x.py", "src/x.py"),
        ("src\\x.py", "src/x.py"),
        ("C:\\w\\x.py", "/w/x.py"),
        ("c:x.py", "x.py"),
        ("\\\\?\\C:\\w\\x.py", "/w/x.py"),
        ("/mnt/c/w/x.py", "/w/x.py"),
        ("//w///x.py", "/w/x.py"),
        ("~/x.py", "x.py"),
        ("~u/x.py", "x.py"),
        ("${HOME}/x.py", "x.py"),
        ("%USERPROFILE%\\x.py", "x.py"),
        ("file:///w/x%20y.py", "/w/x y.py"),
        ("SRC/X.PY", "src/x.py"),
        ("re\u0301sume\u0301.md", "r\u00e9sum\u00e9.md"),
        (" x.py:12-30 ", "x.py"),
        (".env", ".env"),
        (".", ""),
        ("./", ""),
        ("..", ""),
        ("/", ""),
        ("", ""),
        ("\ud800/x", "\ud800/x"),
    ],
)
def test_a_path_has_one_normal_form(spelled: str, is_normal: str) -> None:
    """As text: nothing is looked up."""
    assert normal(spelled) == is_normal == normal(is_normal)


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "src/x.py"},
        {"filePath": "src/x.py"},
        {"absolute_path": "src/x.py"},
        {"TargetFile": "src/x.py"},
        {"target_file": "src/x.py"},
        {"notebook_path": "src/x.py"},
        {"relative_workspace_path": "src/x.py"},
        {"paths": ["src/x.py"]},
        {"paths": '["src/x.py"]'},
        {"files": [{"path": "src/x.py", "content": "y.py"}]},
        {"edits": [{"path": "src/x.py"}, {"path": "./src/x.py"}]},
        {"uri": "file:src/x.py"},
        {"source": "src/x.py"},
        {"input": "*** Begin Patch\n*** Update File: src/x.py\n@@\n"},
        {"input": "*** Begin Patch\n*** Delete File: src/x.py\r\n*** End Patch"},
        {"command": ["apply_patch", "*** Begin Patch\n*** Add File: src/x.py\n+1"]},
        {"diff": "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n"},
    ],
)
def test_a_call_names_a_path_by_the_arguments_name_or_in_a_patch(arguments: Any) -> None:
    """At any depth."""
    assert named_paths(arguments) == ("src/x.py",)


@pytest.mark.parametrize(
    "arguments", [None, 7, "src/x.py", [], {"content": "src/x.py"}, {"path": None}, {"pattern": "x.py"}, {"path": "."}]
)
def test_other_arguments_name_none(arguments: Any) -> None:
    """What an edit writes is no path."""
    assert named_paths(arguments) == ()


@pytest.mark.parametrize(
    "command",
    [
        "cat src/x.py",
        "cat 'src/x.py'|head",
        "git show HEAD:src/x.py",
        "tool --file=src/x.py",
        "cat <./src//x.py",
        "cat 'unfinished src/x.py",
        ["bash", "-lc", "sed -n 1,9p src/x.py"],
        "(cd /w; cat /w/src/x.py)",
        "cat src/*.py",
        "cat /w/*/x.??",
    ],
)
def test_a_word_of_a_shell_command_may_be_a_path(command: Any) -> None:
    """For what a person protects, any of them."""
    assert any(is_under(path, "src/x.py") for path in command_paths({"command": command}))
    assert not any(is_under(path, "src/y.md") for path in command_paths({"command": command}))


@pytest.mark.parametrize(
    ("path", "glob"),
    [
        ("/w/src/x.py", "src/x.py"),
        ("/w/src/x.py", "./src//"),
        ("/w/src/x.py", "SRC\\X.py"),
        ("src/x.py", "src/../src/x.py"),
        ("x.py", "**/x.py"),
        ("a/b/x.py", "**/x.py"),
        ("src/x.py", "src/**/x.py"),
        ("src/a/b/x.py", "src/**/x.py"),
        ("src", "src/**"),
        ("src/a/x.py", "src/*.py"),
        ("app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("app/i/page.tsx", "app/[id]/page.tsx"),
        ("app/[id]/a/b.tsx", "app/[id]/**/*.tsx"),
        ("app/[id]/b.tsx", "app/[id]/**/[ab].tsx"),
        ("app/[[...slug]]/page.tsx", "app/[[...slug]]"),
        ("r\u00e9sum\u00e9.md", "re\u0301sume\u0301.md"),
        ("/home/u/notes/a.md", "~/notes/"),
        ("/w/x.py", "c:\\w\\x.py"),
        ("src/x.py", "/w/src/x.py"),
        ("x.py", "/w/src/*/x.py"),
        ("secret/x.py", "/w/secret/"),
        ("any/thing", "."),
        ("/any/thing", "/"),
    ],
)
def test_a_name_a_folder_or_a_glob_holds_a_path(path: str, glob: str) -> None:
    """Both in normal form, whole names at a time."""
    assert is_under(normal(path), glob)


@pytest.mark.parametrize(
    ("path", "glob"),
    [
        ("/w/mysrc/x.py", "src/x.py"),
        ("src/x.pyc", "src/x.py"),
        ("src/ax.py", "x.py"),
        ("src/x", "src/x.py"),
        ("x.py", "src/x.py"),
        ("y.py", "/w/src/*"),
        ("/v/src/x.py", "/w/src/x.py"),
        (".env.local", ".env"),
        ("app/d/x", "app/[!d]"),
        ("anything", ""),
        ("anything", " "),
    ],
)
def test_no_other_path_is_held(path: str, glob: str) -> None:
    """A part of a name is none."""
    assert not is_under(normal(path), glob)


def test_a_relative_path_may_be_any_that_ends_in_it() -> None:
    """Two that are rooted are one only if they are equal."""
    assert is_same_file("a/b.py", "/w/a/b.py") and is_same_file("/w/a/b.py", "b.py") and is_same_file("/a", "/a")
    assert not any(
        is_same_file(*pair) for pair in [("/a/b.py", "/w/a/b.py"), ("a/b.py", "xa/b.py"), ("", ""), ("", "a")]
    )


@pytest.mark.parametrize(
    "piece", ["../", "a/", "[", "**/", "*", "'", "\\", "*** Add File: ", "\n+++ ", "~", "e\u0301", '["']
)
def test_hostile_paths_cost_little(piece: str) -> None:
    """As an argument, in a command, and as a setting."""
    start = time.perf_counter()
    text = piece * 20_000
    for path in (
        *named_paths({"path": text, "input": text, "paths": [text[:4096]]}),
        *command_paths({"command": text}),
    ):
        is_under(path, "src/x.py")
    is_under("src/x.py", (piece * 40)[:100])
    assert time.perf_counter() - start < 1.5
