"""Shell scripts cut into commands: lines, quotes, arrays, here-documents, shells within."""

from __future__ import annotations

from azcp_kit.lint.shell import Script, parse_script
from hypothesis import given
from hypothesis import strategies as st


def texts(text: str) -> list[tuple[str, ...]]:
    return [command.texts for command in parse_script(text).commands]


def test_continued_lines_are_one_command_and_each_word_knows_its_line() -> None:
    (command,) = parse_script("run \\\n  --a 1 \\\n  'b c'\n").commands
    assert [(word.text, word.line) for word in command.words] == [
        ("run", 1),
        ("--a", 2),
        ("1", 2),
        ("b c", 3),
    ]


def test_commands_end_at_operators_and_redirections_are_left_out() -> None:
    assert texts("a 1 2>/dev/null && b >x; c | d & e 2>&1 # f\n(g)") == [
        ("a", "1"), ("b",), ("c",), ("d",), ("e",), ("g",),
    ]  # fmt: skip


def test_a_sign_inside_a_word_begins_no_comment() -> None:
    assert texts("a docker://x#y ${#a[@]} # z") == [("a", "docker://x#y", "${#a[@]}")]


def test_an_array_takes_the_place_of_its_use() -> None:
    script = "A=(\n  -x 1   # why\n  '2 3'\n)\nrun \"${A[@]}\" end\n"
    assert texts(script)[-1] == ("run", "-x", "1", "2 3", "end")


def test_a_here_document_is_no_command() -> None:
    assert texts("cat <<-'EOF' >f\nrm -rf /\nEOF\nls") == [("cat",), ("ls",)]
    assert texts("((n = 1 << 2))\nls") == [("ls",)]
    assert texts("cat <<< word\nls") == [("cat",), ("ls",)]


def test_what_a_shell_is_given_is_read_at_its_lines() -> None:
    commands = parse_script("srun --x \\\n  bash -ec '\n    a 1\n    b\n  ' arg\nc\n").commands
    assert [(command.line, command.texts[0]) for command in commands] == [
        (1, "srun"),
        (3, "a"),
        (4, "b"),
        (6, "c"),
    ]
    assert commands[1].within is commands[0]
    assert commands[3].within is None


def test_a_program_is_found_behind_others_but_not_in_a_folders_name() -> None:
    (command,) = parse_script("time srun -n 2 /usr/bin/mpirun --prefix /opt/azcp x").commands
    assert command.runs("mpirun")
    assert not command.runs("azcp")
    assert not parse_script("echo mpirun").commands[0].runs("mpirun")


def value(script: Script) -> str | None:
    return script.value(script.commands[-1].words[-1])


def test_a_variable_with_one_value_is_known() -> None:
    assert value(parse_script("N=4\nrun $N")) == "4"
    assert value(parse_script('N="${N:-/a/b}"\nrun "x${N}"')) == "x/a/b"
    assert value(parse_script("run 'x$N'")) == "x$N"


def test_a_variable_with_two_values_or_none_is_unknown() -> None:
    assert value(parse_script("N=4\nN=5\nrun $N")) is None
    assert value(parse_script("run $N")) is None
    assert value(parse_script("run $(date)")) is None


@given(st.text(alphabet="ab$(){}[]<>&|;'\"`\\#=- \n\t!EOF", max_size=200))
def test_any_text_is_read_to_its_end(text: str) -> None:
    script = parse_script(text)
    last = text.count("\n") + 1
    assert all(1 <= word.line <= last for command in script.commands for word in command.words)
