"""A digest loses its oldest statements until it fits."""

from palaver.core.digest import Digest, DigestLine, ProjectDigest


def line(text: str, *details: str) -> DigestLine:
    return DigestLine(text, "ab12", 0, details)


def digest(done: tuple[DigestLine, ...], unfinished: tuple[DigestLine, ...] = ()) -> Digest:
    return Digest(0, None, (ProjectDigest("quay", 9, done=done, open=unfinished),), 9)


def test_the_longest_list_loses_its_oldest_statements() -> None:
    whole = digest(tuple(map(line, "abcde")), (line("f"), line("g")))
    [project] = whole.fitted(8, 80).projects

    assert project.rows(80) == 8
    assert [statement.text for statement in project.done] == ["a", "b", "c"]
    assert (len(project.open), project.omitted) == (2, {"done": 2})
    assert whole.fitted(10, 80) == whole


def test_a_project_keeps_its_heading() -> None:
    [project] = digest((line("a"),)).fitted(0, 80).projects

    assert (project.rows(80), [*project.lists()]) == (1, [])


def test_a_long_statement_needs_several_rows() -> None:
    assert line("word " * 30).rows(80) == 3
    assert line("word " * 30).rows(200) == 1


def test_a_short_statement_names_its_first_result() -> None:
    assert line("Upload fails", "allow 10 MB", "log it").summary == "Upload fails: allow 10 MB"
    assert line("Upload fails", "x" * 120).summary == "Upload fails"
