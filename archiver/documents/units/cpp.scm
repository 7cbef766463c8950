(class_specifier name: (_) @name body: (_)) @class
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @function
(alias_declaration name: (type_identifier) @name) @type
