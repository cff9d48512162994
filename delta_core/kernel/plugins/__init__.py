"""The plugin API's own side: hook specifications, features, rules, and the plugins that serve one table."""
