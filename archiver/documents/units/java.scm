(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(compact_constructor_declaration name: (identifier) @name) @method
(annotation_type_element_declaration name: (identifier) @name) @method
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @constant
(field_declaration
  (modifiers "static" "final")
  declarator: (variable_declarator name: (identifier) @name)
  (#match? @name "^[A-Z][A-Z0-9_]*$")) @constant
[(line_comment) (block_comment)] @comment
