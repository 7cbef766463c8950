(field_definition
  property: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(field_definition property: (property_identifier) @name (#match? @name "^[A-Z][A-Z0-9_]*$")) @constant
