(class_declaration "interface" name: (identifier) @name) @interface
(class_declaration name: (identifier) @name (enum_class_body)) @enum
(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @class
(function_declaration name: (identifier) @name) @function
(secondary_constructor "constructor" @name) @method
(type_alias type: (identifier) @name) @type
[(line_comment) (block_comment)] @comment
