"""Table builders and contract tests, also for plugins and engines of others."""
