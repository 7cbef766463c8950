[(class_declaration name: (name) @name) (trait_declaration name: (name) @name)] @class
(interface_declaration name: (name) @name) @interface
(enum_declaration name: (name) @name) @enum
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @method
(comment) @comment
