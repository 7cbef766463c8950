; Shared by C and C++. The name of a function is inside its declarator.
(function_definition declarator: (function_declarator declarator: (_) @name)) @function
(function_definition
  declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @function
(function_definition
  declarator: (pointer_declarator
    declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))) @function
(preproc_function_def name: (identifier) @name value: (_) @body) @function
(type_definition
  type: [(struct_specifier body: (_) @body) (union_specifier body: (_) @body) (enum_specifier body: (_) @body)]
  declarator: (type_identifier) @name) @type
(type_definition declarator: (type_identifier) @name) @type
(type_definition
  declarator: (function_declarator
    declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))) @type
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @enum
(comment) @comment
