"""Synthetic exchanges, written as a script with one call per turn."""

from dataclasses import dataclass, field

from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn

CWD = "/home/dev/shop"
STARTED = 1_770_000_000_000


@dataclass
class Script:
    """Builder of one exchange, line by line."""

    turns: list[Turn] = field(default_factory=list[Turn])

    def _add(self, speaker: Speaker, kind: Kind, text: str, **more: object) -> "Script":
        line = len(self.turns) + 1
        at = STARTED + line * 1000
        self.turns.append(Turn(line, speaker, kind, text, at, **more))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        return self

    def asked(self, text: str) -> "Script":
        return self._add(Speaker.HUMAN, Kind.PROMPT, text)

    def tasked(self, text: str) -> "Script":
        return self._add(Speaker.HOST, Kind.PROMPT, text)

    def said(self, text: str) -> "Script":
        return self._add(Speaker.ASSISTANT, Kind.PROSE, text)

    def injected(self, text: str) -> "Script":
        return self._add(Speaker.HOST, Kind.INJECTED, text)

    def compacted(self, text: str) -> "Script":
        return self._add(Speaker.HOST, Kind.COMPACTION, text)

    def ran(self, command: str, output: str = "", *, failed: bool = False) -> "Script":
        return self._used("Bash", f"Bash: {command}", output, failed=failed)

    def planned(self, markdown: str, *, rejected: bool) -> "Script":
        return self._used("ExitPlanMode", f"ExitPlanMode: {markdown}", "", failed=rejected)

    def edited(self, path: str) -> "Script":
        return self._used("Edit", f"Edit: {CWD}/{path}\n- old\n+ new", f"{CWD}/{path}", writes=(f"{CWD}/{path}",))

    def wrote(self, path: str, text: str) -> "Script":
        return self._used("Write", f"Write: {CWD}/{path}\n{text}", f"{CWD}/{path}", writes=(f"{CWD}/{path}",))

    def replaced(self, path: str, old: str, new: str) -> "Script":
        text = f"Edit: {CWD}/{path}\n- {old}\n+ {new}"
        return self._used("Edit", text, f"{CWD}/{path}", writes=(f"{CWD}/{path}",))

    def read(self, path: str) -> "Script":
        return self._used("Read", f"Read: {path}", path, reads=(path,))

    def chose(self, *answers: tuple[str, str]) -> "Script":
        text = "\n".join(f"{question} → {answer}" for question, answer in answers)
        self._add(Speaker.ASSISTANT, Kind.CALL, "AskUserQuestion: …", tool="AskUserQuestion", call="q")
        return self._add(Speaker.HUMAN, Kind.RESULT, text, tool="AskUserQuestion", call="q")

    def objected(self, text: str) -> "Script":
        self._add(Speaker.ASSISTANT, Kind.CALL, "Bash: rm -r build", tool="Bash", call="o")
        return self._add(Speaker.HUMAN, Kind.RESULT, text, tool="Bash", call="o", failed=True)

    def _used(self, tool: str, text: str, output: str, *, failed: bool = False, **touched: tuple[str, ...]) -> "Script":
        call = f"call-{len(self.turns)}"
        self._add(Speaker.ASSISTANT, Kind.CALL, text, tool=tool, call=call)
        return self._add(Speaker.TOOL, Kind.RESULT, output, tool=tool, call=call, failed=failed, **touched)

    @property
    def exchange(self) -> Exchange:
        last = len(self.turns)
        return Exchange(0, Span(1, last, 0, 0), tuple(self.turns), STARTED, STARTED + last * 1000, CWD, "main")


def session() -> Session:
    return Session("claude-code", "0d5c3f0e-1111-4222-8333-444455556666", cwd=CWD, project="shop")
