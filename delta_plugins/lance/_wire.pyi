from typing import Any

from typing_extensions import Buffer

UNKNOWN: str

class DamagedError(Exception): ...

class Table:
    name: str
    def __init__(self, name: str) -> None: ...
    def add(self, number: int, name: str, kind: str, form: str, key: str, table: Table | None) -> None: ...

def decode(table: Table, source: Buffer) -> dict[str, Any]: ...
