"""Process-wide services: forked processes, threads, recursion without the stack, deep JSON, lazy imports."""
