"""The parts of a read that all formats share: projection, order of tests, tests by decoders, rows, reports."""
