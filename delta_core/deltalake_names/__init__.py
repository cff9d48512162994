"""The modules of the `deltalake` package, with the objects of this library; `finder` registers them by that name."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.deltalake_names import (
        arro3_results as arro3_results,
        exceptions as exceptions,
        fs as fs,
        internal as internal,
        package as package,
        query as query,
        schema as schema,
        table as table,
        transaction as transaction,
        util as util,
        warnings as warnings,
        writer as writer,
    )
