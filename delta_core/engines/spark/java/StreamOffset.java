/**
 * A position in a table, in the JSON form that checkpoints of queries contain.
 */
public class StreamOffset extends org.apache.spark.sql.execution.streaming.Offset {
  private final String json;
  StreamOffset(String json) { this.json = json; }
  public String json() { return json; }
}
