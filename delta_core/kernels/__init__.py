"""Array functions in compiled code: arrays in, arrays out, GIL released, every end checked."""
