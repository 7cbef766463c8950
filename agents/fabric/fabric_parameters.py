"""Parameters of the fabric tools: those that are objects, and those that several tools have."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ..toolset import WHOLE, WholeNumber

TypeName: TypeAlias = Literal["code_pattern", "bug_fix", "decision", "convention", "scratchpad", "relationship"]
CliName: TypeAlias = Literal["kimi", "claude", "claude-code", "opencode", "codex", "gemini", "cursor", "generic"]
EventName: TypeAlias = Literal[
    "file_opened",
    "command_executed",
    "error_occurred",
    "decision_made",
    "session_start",
    "session_end",
    "pattern_detected",
    "user_feedback",
]
LayerNumber: TypeAlias = Annotated[Literal[1, 2, 3], WHOLE]
SourceName: TypeAlias = Literal["user_explicit", "ai_inferred", "system_auto"]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Field(ge=1, le=5)]
Similarity: TypeAlias = Annotated[float, Field(ge=0, le=1, description="Minimum similarity")]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=10 * 365 * 86_400, description="Seconds until it expires")]
Days: TypeAlias = Annotated[float, Field(ge=0, le=36_500, description="Only memories at least this old")]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
SessionId: TypeAlias = Annotated[str, Field(min_length=1, alias="sessionId", description="ID of the session")]
MemoryId: TypeAlias = Annotated[str, Field(alias="memoryId", description="From a reply")]
ProjectPath: TypeAlias = Annotated[
    str | None, Field(alias="projectPath", description="Folder of the project. Default: working folder")
]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=100, description="Maximum number of results"), WHOLE]
Offset: TypeAlias = Annotated[WholeNumber, Field(json_schema_extra={"minimum": 0}, description="Results to skip")]


class _Fields(BaseModel):
    """Object whose JSON field names are in camel case, such as `projectPath`."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, serialize_by_alias=True)


class FileContext(_Fields):
    """Lines of a file."""

    path: str
    line_start: WholeNumber | None = None
    line_end: WholeNumber | None = None
    language: str | None = None


class CodeBlock(_Fields):
    """Source code."""

    code: str
    language: str
    file_path: str | None = None


class NewMetadata(_Fields):
    """Metadata of a new memory. Other fields are stored too."""

    model_config = ConfigDict(extra="allow")

    tags: list[str] = []
    title: str | None = None
    confidence: Confidence = 0.8
    source: SourceName = "ai_inferred"
    project_path: str | None = None
    cli_type: str = "generic"
    file_context: FileContext | None = None
    code_block: CodeBlock | None = None
    weight: Weight = 3


class MetadataChange(_Fields):
    """Metadata to change. Other fields are stored too."""

    model_config = ConfigDict(extra="allow")

    tags: list[str] | None = None
    title: str | None = None
    confidence: Confidence | None = None
    source: SourceName | None = None
    project_path: str | None = None
    cli_type: str | None = None
    file_context: FileContext | None = None
    code_block: CodeBlock | None = None
    weight: Weight | None = None


class RecallFilter(_Fields):
    """Conditions for recalled memories."""

    types: list[str] | None = None
    layers: list[LayerNumber] | None = None
    tags: list[str] | None = None
    project_path: str | None = None


class SummaryOptions(_Fields):
    """Length and selection of a summary."""

    target_tokens: Annotated[int, Field(ge=1, le=100_000), WHOLE]
    focus_types: list[str] | None = None
    include_patterns: bool = True
    include_decisions: bool = True


class Event(_Fields):
    """Event in a client, such as a command that was run."""

    type: EventName
    payload: dict[str, Any]
    timestamp: str
    session_id: Text
    cli_type: CliName
    project_path: str | None = None
