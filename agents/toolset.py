"""A tool surface: typed functions, and everything that follows from their signatures."""

import inspect
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Annotated, Any

import orjson
from msgspec import Struct
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails, PydanticCustomError, core_schema

from ..core.errors import InvalidInput, PalaverError
from ..core.tokens import count
from ..templates.quote import brief
from .desk import Place


class Reply(Struct, frozen=True):
    """Reply of a tool. `data` is the object of a JSON reply, and `text` is then the same object as JSON."""

    text: str
    data: Mapping[str, Any] | None = None


class Effect(Enum):
    """What a call does to what is stored."""

    READS = auto()
    WRITES = auto()
    DESTROYS = auto()


def _in_64_bits(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise PydanticCustomError("int_size", "too large")
    return value


WholeNumber = Annotated[
    int,
    BeforeValidator(lambda value: int(value) if _is_whole(value) else value),
    AfterValidator(_in_64_bits),
]
"""An integer of at most 64 bits, which is what SQLite stores. JSON does not tell 10.0 from 10."""


class Tool(Struct, frozen=True):
    """One tool: the name, the prompt, the arguments and what to do, all taken from one function.

    The function's first parameter is the desk; the others are the tool's. Their types are checked here; limits that
    only stand in the schema are checked by the layers, which have the words for them. `judges` says whether a call may
    have memories compared, for which a language model may be asked where a person chose so.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    function: Callable[..., Reply]
    effect: Effect = Effect.READS
    judges: bool = False

    @classmethod
    def of(cls, function: Callable[..., Reply], effect: Effect = Effect.READS, *, judges: bool = False) -> "Tool":
        """The tool that `function` describes."""
        parameters = [*inspect.signature(function, eval_str=True).parameters.values()][1:]
        fields: dict[str, Any] = {
            p.name: (p.annotation, ... if p.default is inspect.Parameter.empty else p.default) for p in parameters
        }
        closed = ConfigDict(extra="forbid", strict=True)
        arguments: type[BaseModel] = create_model(function.__name__, __config__=closed, **fields)
        return cls(function.__name__, inspect.cleandoc(function.__doc__ or ""), arguments, function, effect, judges)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments: closed, and without anything that a model need not read."""
        schema = self.arguments.model_json_schema(schema_generator=_LeanSchema)
        schema.pop("title", None)
        return schema

    def call(self, desk: object, arguments: Mapping[str, object]) -> Reply:
        """Run the tool; raises `InvalidInput` for wrong arguments. null means the same as leaving a parameter out."""
        required = {field.alias or name for name, field in self.arguments.model_fields.items() if field.is_required()}
        present = {name: value for name, value in arguments.items() if value is not None or name in required}
        try:
            given = self.arguments.model_validate(present)
        except ValidationError as error:
            faults = dict.fromkeys(_fault(detail) for detail in error.errors(include_url=False))
            known = ", ".join(field.alias or name for name, field in self.arguments.model_fields.items())
            raise InvalidInput("; ".join(faults), hint=f"Parameters of {self.name}: {known}.") from None
        return self.function(desk, **{name: getattr(given, name) for name in self.arguments.model_fields})


class Toolset(Struct, frozen=True):
    """One surface: its tools in the order they are listed, its words for errors, and how its desk is opened.

    `refusal` turns an error into what the caller reads. `instructions` tells a model what the tools are for together.
    `open` is called at the first tool call, so that connecting stays fast.
    """

    name: str
    instructions: str
    tools: tuple[Tool, ...]
    refusal: Callable[[PalaverError], Reply]
    open: Callable[[Place], object]

    @property
    def tokens(self) -> int:
        """What the surface costs every session that has it: instructions, names, descriptions and schemas."""
        listed = [{"name": t.name, "description": t.description, "inputSchema": t.schema} for t in self.tools]
        return count(self.instructions) + count(orjson.dumps(listed).decode())


class _LeanSchema(GenerateJsonSchema):
    """Without titles, and with optional parameters shown as what they are when given."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        shown = super().default_schema(schema)
        if shown.get("default", ...) is None:
            del shown["default"]
        return shown


_EXPECTED = {
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_size": "must be a whole number of at most 64 bits",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "list_type": "must be an array of strings",
    "missing": "is required",
    "extra_forbidden": "is not a parameter",
}


def _fault(detail: ErrorDetails) -> str:
    name, *index = detail["loc"]
    where = brief(str(name), 20) + "".join(f"[{position}]" for position in index)
    expected = _EXPECTED.get(detail["type"]) or f"must be {detail.get('ctx', {}).get('expected', detail['msg'])}"
    return f"Invalid parameter: {where} {expected}"


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()
