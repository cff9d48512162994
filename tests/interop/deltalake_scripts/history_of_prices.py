"""A slowly changing dimension: the old row of a product ends, and the new one begins."""

import sys
from datetime import date

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

place = f"{sys.argv[1]}/prices"
schema = Schema(
    [
        Field("product", PrimitiveType("string"), nullable=False),
        Field("price", PrimitiveType("double")),
        Field("since", PrimitiveType("date")),
        Field("until", PrimitiveType("date")),
    ]
)
dt = DeltaTable.create(place, schema=schema, configuration={"delta.appendOnly": "false"})
assert dt.version() == 0
assert dt.metadata().configuration == {"delta.appendOnly": "false"}


def load(day: date, prices: dict[str, float]) -> None:
    news = pa.table({"product": list(prices), "price": list(prices.values()), "since": [day] * len(prices)})
    (
        DeltaTable(place)
        .merge(news, "t.product = s.product and t.until is null and t.price <> s.price", "s", "t")
        .when_matched_update({"until": "s.since"})
        .execute()
    )
    known = DeltaTable(place).to_pandas()
    still = set(known[known["until"].isna()]["product"])
    fresh = news.filter(pa.array([p not in still for p in prices]))
    if fresh.num_rows:
        write_deltalake(place, fresh.append_column("until", pa.nulls(fresh.num_rows, pa.date32())), mode="append")


load(date(2026, 1, 1), {"tea": 3.0, "coffee": 4.0})
load(date(2026, 2, 1), {"tea": 3.0, "coffee": 4.5})
load(date(2026, 3, 1), {"tea": 3.5, "juice": 2.0})
rows = DeltaTable(place).to_pyarrow_table().sort_by([("product", "ascending"), ("since", "ascending")]).to_pylist()
assert [(r["product"], r["price"], r["until"]) for r in rows] == [
    ("coffee", 4.0, date(2026, 2, 1)),
    ("coffee", 4.5, None),
    ("juice", 2.0, None),
    ("tea", 3.0, date(2026, 3, 1)),
    ("tea", 3.5, None),
]
