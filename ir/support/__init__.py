"""What any program of this size needs, whatever it compiles. Nothing here knows IR or xDSL.

The modules are about

- errors and limits: `errors`, `limits`, `suggestions`, `user_entries`;
- files: `whole_file`, `whole_folder`, `beside`, `sealed_file`, `private_folder`, `cache_folder`;
- texts: `json_lines`, `toml_text`, `brackets`, `unused_names`;
- numbers and arrays: `arrays`, `number_kinds`, `same_number`, `distinct`, `strided`;
- results that are kept: `hash_once`, `cached_by_identity`, `kept_tables`;
- the process: `deferred`, `garbage`, `host_memory`, `turns`.

They import each other, NumPy and the standard library only; tests/test_layers.py checks it.
"""
