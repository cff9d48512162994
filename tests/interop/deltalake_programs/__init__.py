"""Programs as users of `deltalake` and of libraries on it write them: they do not name this library.

`tests/interop/test_as_deltalake.py` runs each by ``python -m delta_core.as_deltalake``, with an empty folder.
"""
