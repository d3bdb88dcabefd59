"""Blocks are found on each page; tables about them name those that there are; a wrong one is noticed."""

from __future__ import annotations

import pytest
from assumed_by_docs import ASSUMED, NOT_RUN, Assumed
from blocks_of_docs import BLOCKS, PAGES, ROOT, Block, blocks_of
from following_docs import Follower

BLANK_LINES = {"docs/runs.md": 3}
"""Of pictures, by page."""
PAGE = """# A page

    rtrain fit mlp \\
        lr=0.1   # a comment
    rtrain runs ls

```yaml
# own.yaml, next to it
defaults: [mlp]
```

```yaml
# @package _global_
# configs/experiment/own.yaml
run: {name: own}
```

    $ rtrain fit mlp
    error: it failed

It shows:

    a picture
"""


def test_blocks_have_a_place_a_language_and_a_name():
    found = [(one.line, one.language, one.name, one.file) for one in blocks_of("page.md", PAGE)]
    assert found == [
        (3, "shell", "rtrain fit mlp \\", None),
        (5, "shell", "rtrain runs ls", None),
        (8, "yaml", "# own.yaml, next to it", "own.yaml"),
        (13, "yaml", "# @package _global_", "configs/experiment/own.yaml"),
        (18, "shell", "rtrain fit mlp", None),
        (23, "text", "a picture", None),
    ]
    assert list(blocks_of("page.md", PAGE))[4].shown == "error: it failed\n"


@pytest.mark.parametrize("page", PAGES)
def test_no_block_of_a_page_is_missed(page):
    """The lines of blocks are found without the regular expression that finds the blocks."""
    fenced, is_fenced, before, expected = [], False, "", 0
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
            fenced += [line] if is_fenced else []
        elif not is_fenced and line.startswith("    ") and not before.strip():
            expected += 1
        before = line
    starts = {one.line for one in BLOCKS[page]}
    assert len([one for one in BLOCKS[page] if one.language in ("yaml", "python", "bash")]) == len(fenced)
    assert len(starts) == len(BLOCKS[page]) >= expected + len(fenced) - BLANK_LINES.get(page, 0)


@pytest.mark.parametrize("page", NOT_RUN)
def test_each_reason_belongs_to_a_block(page):
    names = [block.name for block in BLOCKS[page]]
    assert [name for name in NOT_RUN[page] if names.count(name) != 1] == []


@pytest.mark.parametrize("page", ASSUMED)
def test_each_word_that_is_replaced_is_on_the_page(page):
    text = "".join(block.text for block in BLOCKS[page])
    assert [word for word in ASSUMED[page].words if word not in text] == []


@pytest.mark.parametrize(
    ("language", "text", "shown", "error"),
    [
        ("shell", "rtrain check mlp lrr=0.1", "", "there is no key 'lrr'"),
        ("shell", "rtrain check mlp lrr=0.1", "error: there is no key 'rrl'", "there is no key 'lrr'"),
        ("shell", "rtrain --version", "error: it failed", "rtrain 0"),
        ("shell", "make nothing", "", "make nothing"),
        ("shell", "rm -r runs", "", "no way to run rm"),
        ("yaml", "trainer: {modell: {}}", "", "modell"),
        ("yaml", "# own.yaml\ndefaults: [", "", "ParserError"),
        ("bash", "if true; rtrain fit mlp", "", "CalledProcessError"),
        ("bash", 'srun rtrain fit mlp lrr=0.1 run.name="mlp-$JOB" &', "", "there is no key 'lrr'"),
        ("bash", "ray status", "", "it starts no training"),
        ("python", "import rtrain\nrtrain.fitt('mlp')", "", "fitt"),
        ("text", "a picture", "", "NOT_RUN lacks it"),
    ],
)
def test_a_wrong_block_is_noticed(language, text, shown, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Follower("docs/index.md", Assumed()).follow(Block("docs/index.md", 1, language, text, shown))
    assert error in found
