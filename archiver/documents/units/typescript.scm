(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(type_alias_declaration name: (_) @name) @type
(function_signature name: (_) @name) @function
(abstract_method_signature name: (_) @name) @method
(public_field_definition
  name: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(public_field_definition name: (property_identifier) @name (#match? @name "^[A-Z][A-Z0-9_]*$")) @constant
