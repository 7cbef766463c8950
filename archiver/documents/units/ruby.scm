[(class name: (_) @name) (module name: (_) @name)] @class
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(comment) @comment
