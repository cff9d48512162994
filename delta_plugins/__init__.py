"""The bundled plugins, one folder per table feature or store."""
