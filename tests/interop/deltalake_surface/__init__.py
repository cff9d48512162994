"""The public behaviour of deltalake, call by call, compared with this library's under that name.

`surface` lists what the installed package has, `cells` generates short scripts from that list, `running` runs each on a
copy of a table of `tables`, and `answers` describes in JSON what came of it. The answers of deltalake are recorded in
``recorded.json.xz``; the differences that are on purpose, or still open, are in ``differences.toml``.
"""
