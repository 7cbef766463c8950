(class_declaration "enum" name: (type_identifier) @name) @enum
(class_declaration name: (type_identifier) @name) @class
; An extension has the name of its type.
(class_declaration "extension" name: (user_type (type_identifier) @name)) @class
(protocol_declaration name: (type_identifier) @name) @interface
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @function
(init_declaration "init" @name) @method
(deinit_declaration "deinit" @name) @method
(typealias_declaration name: (type_identifier) @name) @type
[(comment) (multiline_comment)] @comment
