"""Long lines on terminals of any width."""

import random
import shlex

import pytest

from rtrain.text.wrapping import NARROWEST, room, wrapped

WIDTHS = [NARROWEST, 40, 80, 120, 200]
LINES = [
    "error: there is no config called 'nope' in ./configs, ./config, ./conf or built in, nor elsewhere",
    "checkpoint  runs/a-name-that-is-long/2026-11-01_12-00-00-c5e7/checkpoints/epoch-0015-step-00000300 and more words",
    "jax         JAX: a Flax module with Optax, or a train function of your own, in one world of processes.  [ready]",
    "epoch 1/15  step 20  train/epoch_loss 2.003  val/loss 1.489  val/accuracy 0.8889  val/f1 0.8  761 rows/s",
    "    an indented text of which there is more than one line even on a wide terminal, as descriptions of keys are",
    "no-spaces-" * 40,
    "training mlp with torch on digits (1,258 rows) in this process -> runs/mlp/2026-11-01_12-00-00-c5e7",
]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_only_words_that_are_longer_than_a_line_are_longer_than_the_terminal(line, width):
    lines = wrapped(line, width).split("\n")
    assert " ".join(lines).split() == line.split()
    for one in lines:
        assert len(one) <= width or len(one.split()) == 1 or one.lstrip().startswith("->"), one


@pytest.mark.parametrize("width", WIDTHS)
def test_what_fits_is_left_as_it_is(width):
    text = "\n".join(["short", "", "  a  b", "x" * width])
    assert wrapped(text, width) == text


@pytest.mark.parametrize("width", WIDTHS)
def test_a_broken_command_is_still_the_command(width):
    words = [
        "rtrain",
        "fit",
        "mlp",
        "trainer.model.hidden=[128, 128]",
        "run.tags=[a, b]",
        "dataset.path=a b c",
        "lr=0.1",
    ]
    told = wrapped(f"  try: {shlex.join(words)}", width)
    pasted = told.removeprefix("  try: ").replace("\\\n", "")
    assert shlex.split(pasted) == words


def test_prose_about_a_command_gets_no_backslashes():
    assert "\\" not in wrapped("rtrain has no devices: scaling.num_workers=N starts N processes, and use_gpu a GPU", 40)


def test_lines_with_carets_below_them_stay():
    of_file = f"  >    3 | {'key: value ' * 12}\n         | {' ' * 60}^^^^^"
    text = f"error: wrong\n{of_file}\n    {'rtrain fit mlp ' * 9}\n    ^^^"
    assert wrapped(text, 80) == text


def test_generated_texts_keep_their_words():
    chosen = random.Random(0)
    for _ in range(300):
        words = [
            "".join(chosen.choices("ab-/.:'\"[]=x", k=chosen.randint(1, 30))) for _ in range(chosen.randint(1, 40))
        ]
        line = " " * chosen.randint(0, 6) + "".join(word + " " * chosen.randint(1, 3) for word in words).rstrip()
        for width in WIDTHS:
            lines = wrapped(line, width).split("\n")
            assert " ".join(lines).split() == line.split()
            assert all(len(one) <= width or len(one.split()) == 1 for one in lines)


def test_a_narrower_terminal_leaves_less_room(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

        def fileno(self):
            raise OSError

    monkeypatch.setenv("COLUMNS", "80")
    assert room(116, 11, Terminal()) == 69
    assert room(50, 11, Terminal()) == 50
    monkeypatch.setenv("COLUMNS", "10")
    assert room(116, 11, Terminal()) == NARROWEST


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize(
    "before", ["note: nothing is left to train. To continue training: ", "  a hint, twice indented, with a command: "]
)
def test_a_command_at_the_end_of_a_sentence_gets_lines_of_its_own(before, width):
    words = ["rtrain", "resume", "runs/mlp/2026-11-01_12-00-00-c5e7", "trainer.max_epochs=60", "run.name=a b"]
    text = wrapped(before + shlex.join(words), width)
    prose, begin, command = text.partition("rtrain resume")
    assert prose.split() == before.split()
    assert shlex.split((begin + command).replace("\\\n", " ")) == words


def test_a_sentence_that_goes_on_behind_a_command_stays_a_sentence():
    text = "note: either of these: rtrain resume runs/mlp/2026-11-01_12-00-00-c5e7, or rtrain fit mlp, which is new"
    assert " ".join(wrapped(text, 60).split()) == text
