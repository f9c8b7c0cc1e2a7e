"""Shell text is read as bash reads it, and every word knows where it stands."""

import pytest

from trainlint.documents import Place
from trainlint.formats.launch.command_line import Command, Word, commands


def read(text: str) -> tuple[Command, ...]:
    return commands("run.sh", text)


def texts(command: Command) -> list[str | None]:
    return [word.text for word in command.words]


def spot(word: Word) -> tuple[int, int, int, int]:
    return word.place[1:]


def test_a_backslash_continues_a_command() -> None:
    (command,) = read("torchrun train.py \\\n    --lr 1e-4 \\\n    --bf16\n")
    assert texts(command) == ["torchrun", "train.py", "--lr", "1e-4", "--bf16"]
    assert spot(command.words[3]) == (2, 10, 2, 14)
    assert command.place == Place("run.sh", 1, 1, 3, 11)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x 'a  $b'", "a  $b"),
        ('x "a \\"b\\" \\n"', 'a "b" \\n'),
        ("x a\\ b", "a b"),
        ("x a'b'\"c\"", "abc"),
        ("x ''", ""),
        ("x a#b", "a#b"),
        ("x $", "$"),
        ("x $'a'", "a"),
    ],
)
def test_quotes_and_escapes_are_undone(text: str, word: str) -> None:
    assert texts(read(text)[0]) == ["x", word]


@pytest.mark.parametrize("text", ["$1", "$(nproc)", "`nproc`", "$((2 * 4))", "${N:-8}", "$UNSET", '"a$UNSET"', "<(ls)"])
def test_what_a_run_decides_has_no_text(text: str) -> None:
    assert texts(read(f"x {text}")[0]) == ["x", None]


def test_arguments_of_the_script_are_left_out() -> None:
    assert texts(read('python train.py "$@"')[0]) == ["python", "train.py"]


def test_comments_end_a_command() -> None:
    first, second = read("a b # c\n# d\ne\n")
    assert texts(first) == ["a", "b"]
    assert texts(second) == ["e"]
    assert first.cut is None


def test_a_comment_between_continued_lines_cuts_the_command() -> None:
    first, second = read("a --x \\\n  # --y \\\n  --z 1\n")
    assert texts(first) == ["a", "--x"]
    assert first.cut == Place("run.sh", 2, 3, 2, 10)
    assert texts(second) == ["--z", "1"]


def test_a_backslash_inside_a_comment_continues_nothing() -> None:
    first, second = read("a --x # why \\\n  --z 1\n")
    assert first.cut == Place("run.sh", 1, 7, 1, 14)
    assert texts(second) == ["--z", "1"]


def test_a_backslash_followed_by_spaces_continues_nothing() -> None:
    assert [command.name for command in read("a --x \\  \n--y\n")] == ["a", "--y"]


def test_variables_stand_where_they_are_set() -> None:
    (command,) = read("LR=1e-4\nx --lr $LR --name run-$LR\n")
    assert texts(command) == ["x", "--lr", "1e-4", "--name", "run-1e-4"]
    assert spot(command.words[2]) == (1, 4, 1, 8)
    assert command.words[2].used == Place("run.sh", 2, 8, 2, 11)
    assert spot(command.words[4]) == (2, 19, 2, 26)


def test_unquoted_variables_are_split_into_words() -> None:
    (command,) = read('ARGS="--a 1\n  --b 2"\nx $ARGS "$ARGS"\n')
    assert texts(command) == ["x", "--a", "1", "--b", "2", "--a 1\n  --b 2"]
    assert spot(command.words[3]) == (2, 3, 2, 6)


def test_arrays_expand_to_their_items() -> None:
    (command,) = read('A=(--a "b c" # why\n  --d)\nA+=(--e)\nx "${A[@]}"\n')
    assert texts(command) == ["x", "--a", "b c", "--d", "--e"]


def test_appending_to_a_variable_keeps_what_it_held() -> None:
    (command,) = read('ARGS="--a"\nARGS+=" --b"\nx $ARGS\n')
    assert texts(command) == ["x", "--a", "--b"]


@pytest.mark.parametrize(
    "block",
    [
        'if [ "$1" ]; then\n  N=4\nfi\n',
        "for N in 1 2; do\n  true\ndone\n",
        "case $1 in\n  a) N=2 ;;\nesac\n",
        "while read line; do N=3; done\n",
        "(N=3)\n",
    ],
)
def test_what_a_branch_sets_is_unknown_behind_it(block: str) -> None:
    assert texts(read(f"N=1\n{block}x $N\n")[-1]) == ["x", None]


def test_what_a_function_sets_stays() -> None:
    assert texts(read("f() {\n  N=4\n}\nx $N\n")[-1]) == ["x", "4"]


def test_commands_in_branches_are_conditional() -> None:
    found = {command.name: command for command in read("a\nif true; then\n  b\nelse\n  c\nfi\nd\nf() { e; }\n")}
    assert [name for name, command in found.items() if command.conditional] == ["true", "b", "c"]


def test_a_variable_set_in_a_branch_may_add_words() -> None:
    text = 'if [ "$1" ]; then EXTRA="--fp16"; fi\nx --lr 1 $EXTRA\ny --lr $EXTRA\nz $UNSET\n'
    opened = [command.open for command in read(text)[-3:]]
    assert opened == [True, False, False]


def test_environment_holds_prefixes_and_exports() -> None:
    first, second = read("export CUDA_VISIBLE_DEVICES=0,1\nA=1\nexport A\nNCCL_DEBUG=INFO x\nenv B=2 y\n")
    known = {name: word.text for name, word in first.environment.items()}
    assert known == {"CUDA_VISIBLE_DEVICES": "0,1", "A": "1", "NCCL_DEBUG": "INFO"}
    assert second.environment["B"].text == "2"
    assert "NCCL_DEBUG" not in second.environment
    assert spot(first.environment["CUDA_VISIBLE_DEVICES"]) == (1, 29, 1, 32)


def test_here_documents_and_redirections_are_no_words() -> None:
    found = read("cat <<EOF > x.yaml\ntorchrun a\nEOF\nx --a 2>&1 >log 2> err < in | tee log\ny <<< word --b &> log\n")
    assert [texts(command) for command in found] == [["cat"], ["x", "--a"], ["tee", "log"], ["y", "--b"]]


def test_commands_of_an_inner_shell_are_found_where_they_stand() -> None:
    found = read("CMD='python t.py'\nsrun -n 1 bash -c \"$CMD --a 1\"\n")
    assert texts(found[1]) == ["python", "t.py", "--a", "1"]
    assert spot(found[1].words[0]) == (1, 6, 1, 12)
    assert spot(found[1].words[2]) == (2, 25, 2, 28)


@pytest.mark.parametrize(
    "text", ["'", '"', "$(", "${", "`", "((", "a=(", "x <<EOF", "\\", "$'", "fi", "}", ")", "esac; done"]
)
def test_broken_text_is_no_error(text: str) -> None:
    read(text)
