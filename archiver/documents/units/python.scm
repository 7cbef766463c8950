; Enumerations and protocols are classes with a particular base class.
(class_definition
  name: (identifier) @name
  superclasses: (argument_list (_) @_base)
  (#match? @_base "(Enum|Flag)$")) @enum
(class_definition
  name: (identifier) @name
  superclasses: (argument_list (_) @_base)
  (#match? @_base "^(typing\\.)?Protocol\\b")) @interface
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function

(type_alias_statement left: (type . [(identifier) @name (generic_type . (identifier) @name)])) @type
(assignment left: (identifier) @name type: (type) @_type (#match? @_type "\\bTypeAlias$")) @type

; A string after a constant documents it.
([(module (expression_statement (assignment left: (identifier) @name) @constant) . (expression_statement (string) @doc))
  (block (expression_statement (assignment left: (identifier) @name) @constant) . (expression_statement (string) @doc))]
  (#match? @name "^_?[A-Z][A-Z0-9_]*$"))
(module
  (expression_statement (assignment left: (identifier) @name) @constant)
  (#match? @name "^_?[A-Z][A-Z0-9_]*$"))
(class_definition
  body: (block (expression_statement (assignment left: (identifier) @name) @constant))
  (#match? @name "^_?[A-Z][A-Z0-9_]*$"))

(function_definition body: (block . (expression_statement (string) @doc))) @documented
(class_definition body: (block . (expression_statement (string) @doc))) @documented

(comment) @comment
