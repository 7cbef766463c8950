(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @class
(union_item name: (type_identifier) @name) @class
(enum_item name: (type_identifier) @name) @enum
(trait_item name: (type_identifier) @name) @interface
(type_item name: (type_identifier) @name) @type
; An impl block has the name of its type, so that `open` of `Store` is found as `Store.open`.
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
  (reference_type type: (type_identifier) @name)]) @class
(source_file (const_item name: (identifier) @name) @constant)
(source_file (static_item name: (identifier) @name) @constant)
(declaration_list (const_item name: (identifier) @name) @constant)
[(line_comment) (block_comment)] @comment
(attribute_item) @attribute
