"""What `test_spark_stream_turns` runs in a session of each library: streams of the format delta, until they end."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spark.error_program import session


def main(folder: Path, is_peer: bool) -> None:
    spark, _ = session(folder, is_peer)
    place = str(folder / "source")
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(place)
    changes = spark.readStream.format("delta").option("readChangeFeed", "true").load(place)
    for name, stream, mode in (
        ("rows", rows, "append"),
        ("changes", changes.select("id", "_change_type"), "append"),
        ("counts", rows.groupBy("p").count(), "complete"),
    ):
        writer = stream.writeStream.format("delta").outputMode(mode).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        writer.start(str(folder / name)).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "peer")
