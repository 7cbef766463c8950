; Shared by JavaScript and TypeScript.
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method

; Functions and classes with the name of a variable, a property or an assigned member.
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @function
; A component, such as `const Title = memo(() => ...)`.
(variable_declarator
  name: (identifier) @name
  value: (call_expression
    arguments: (arguments [(arrow_function body: (_) @body) (function_expression body: (_) @body)]))
  (#match? @name "^[A-Z]")) @function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @class
(pair
  key: (property_identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(assignment_expression
  left: (member_expression
    object: (member_expression object: (_) @owner property: (property_identifier) @_prototype)
    property: (property_identifier) @name)
  right: (function_expression body: (_) @body)
  (#eq? @_prototype "prototype")) @method
(assignment_expression
  left: (member_expression object: (_) @_object property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]
  (#any-of? @_object "exports" "module.exports" "this")) @function
(assignment_expression
  left: (member_expression
    object: [(identifier) (member_expression)] @owner
    property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(assignment_expression
  left: (identifier) @name
  right: (function_expression body: (_) @body)) @function

(program
  (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name value: (_)) @constant)
  (#match? @name "^_?[A-Z][A-Z0-9_]*$"))
(export_statement
  declaration: (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name value: (_)) @constant)
  (#match? @name "^_?[A-Z][A-Z0-9_]*$"))

(comment) @comment
(decorator) @attribute
