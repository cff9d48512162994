"""The commands, each loaded on first use: listing them loads neither Arrow nor the table."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.cli.alter import alter as alter
    from delta_core.cli.catalog import catalog as catalog
    from delta_core.cli.change import (
        checkpoint as checkpoint,
        create as create,
        delete as delete,
        update as update,
        write as write,
    )
    from delta_core.cli.clone import clone as clone
    from delta_core.cli.convert import convert as convert
    from delta_core.cli.feature import feature as feature
    from delta_core.cli.follow import follow as follow
    from delta_core.cli.inspect import (
        features as features,
        files as files,
        history as history,
        info as info,
        log as log,
        schema as schema,
    )
    from delta_core.cli.log_files import cleanup as cleanup, compact_log as compact_log, generate as generate
    from delta_core.cli.merge import merge as merge
    from delta_core.cli.optimize import optimize as optimize, purge as purge
    from delta_core.cli.plugin import plugin as plugin
    from delta_core.cli.report import health as health, report as report
    from delta_core.cli.restore import restore as restore
    from delta_core.cli.rows import (
        cat as cat,
        changes as changes,
        count as count,
        diff as diff,
        explain as explain,
        head as head,
        sql as sql,
    )
    from delta_core.cli.statistics import statistics as statistics
    from delta_core.cli.vacuum import vacuum as vacuum
    from delta_core.cli.verify import repair as repair, verify as verify
