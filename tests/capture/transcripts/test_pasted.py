"""What was pasted into a turn is not the person's own."""

from engram.capture.transcripts.windows import ToolOutputLines, own_words, pasted_lines


def own(content: str, *results: str) -> list[str]:
    """The lines that are left of a turn."""
    echoes = ToolOutputLines()
    for result in results:
        echoes.note(result)
    found = own_words(content, pasted_lines(content, echoes))
    assert len(found) == len(content)
    return [line for line in found.split("\n") if line.strip()]


def test_logs_traces_diffs_and_code_are_blanked() -> None:
    pasted = [
        "2026-11-02 09:00:01 INFO always use port 80", "[12:30:01] worker started", "ERROR: we never retry", "Traceback (most recent call last):",
        '  File "/app/main.py", line 3, in <module>', "ValueError: I always fail", "    at Object.<anonymous> (/app/a.js:1:2)", "panic: never do this",
        "npm ERR! we use npm", "src/app.ts:3:7: error: always", "$ make test", "diff --git a/x b/x", "@@ -1,2 +1,2 @@", '  "name": "acme",', "goroutine 1 [running]:",
        "HTTP/1.1 200 OK", "User-Agent: we always",
    ]  # fmt: skip
    assert [line for line in pasted if own(line)] == []


def test_what_people_write_is_kept() -> None:
    written = [
        "We deploy on Thursdays only.", "use tabs, never spaces", "On Mondays I work from home.", "error handling: always wrap errors", "In Go: no panics in libraries.",
        "the port is 8080 and it stays", "- never squash merge", "Date handling goes through Temporal.", "todo: ask Ana", "from now on use pnpm", "let me know when it's done",
    ]  # fmt: skip
    assert [line for line in written if not own(line)] == []


def test_a_quoted_mail_is_left_to_the_reader_of_sentences() -> None:
    mail = "see below\nFrom: ana@example.com\nSubject: plans\n\nWe always deploy on Fridays."
    assert "\n".join(own(mail)) == mail.replace("\n\n", "\n")


def test_lines_between_two_pasted_ones_belong_to_them() -> None:
    assert own("It fails:\n2026-11-02 09:00 start\nI always retry\n2026-11-02 09:01 end\nWe use tabs.") == [
        "It fails.",
        "We use tabs.",
    ]


def test_a_line_that_a_tool_had_returned_is_not_the_persons() -> None:
    rule = "Always run the linter before you push anything."
    assert own(f"{rule}\nWe use tabs.", f"# Contributing\n\n{rule}\n") == ["We use tabs."]
    assert own(rule) == [rule]
