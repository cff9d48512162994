/**
 * The source of one streaming query: Python plans which files a batch has, and Spark reads them.
 */
public class StreamSource implements org.apache.spark.sql.execution.streaming.Source,
    org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final StructType schema;
  private final java.util.function.Function python;
  StreamSource(org.apache.spark.sql.classic.SparkSession session, StructType schema, java.util.function.Function python,
               String folder) {
    this.session = session; this.schema = schema; this.python = python;
    try { python.apply("begin\n" + stored(new Path(folder, "delta_core_start")) + "\n" + folder); }
    catch (java.io.IOException e) { throw new IllegalStateException("The start of the stream can't be kept in " + folder, e); }
  }
  // The place where the query began is kept beside its offsets: a query that is started again before its first batch is
  // recorded begins there, and not where the table is by then.
  private String stored(Path place) throws java.io.IOException {
    FileSystem files = place.getFileSystem(session.sessionState().newHadoopConf());
    if (!files.exists(place)) {
      // offsets without a start are those of delta-spark
      Path offsets = new Path(place.getParent().getParent().getParent(), "offsets/0");
      String recorded = files.exists(offsets) ? "\n" + text(files, offsets) : "";
      byte[] text = ((String) python.apply("first\n" + place.getParent() + recorded)).getBytes("UTF-8");
      Path made = new Path(place.getParent(), "." + place.getName() + "." + UUID.randomUUID());
      FSDataOutputStream out = files.create(made, true);
      try { out.write(text, 0, text.length); } finally { out.close(); }
      if (!files.rename(made, place)) throw new java.io.IOException("rename to " + place + " failed");
    }
    return text(files, place);
  }
  static String text(FileSystem files, Path place) throws java.io.IOException {
    byte[] text = new byte[(int) files.getFileStatus(place).getLen()];
    FSDataInputStream in = files.open(place);
    try { in.readFully(0L, text); } finally { in.close(); }
    return new String(text, "UTF-8");
  }
  public StructType schema() { return schema; }
  public org.apache.spark.sql.connector.read.streaming.ReadLimit getDefaultReadLimit() {
    return new org.apache.spark.sql.connector.read.streaming.ReadLimit() {};  // the limits are Python's
  }
  public void prepareForTriggerAvailableNow() { python.apply("available"); }
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, org.apache.spark.sql.connector.read.streaming.ReadLimit limit) {
    boolean all = limit instanceof org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
    Object found = python.apply("latest\n" + (start == null ? "" : start.json()) + "\n" + (all ? "all" : ""));
    return found == null ? start : new StreamOffset((String) found);
  }
  public scala.Option getOffset() { throw new UnsupportedOperationException("latestOffset is called instead"); }
  public org.apache.spark.sql.Dataset getBatch(scala.Option start, org.apache.spark.sql.execution.streaming.Offset end) {
    String first = start.isEmpty() ? "" : ((org.apache.spark.sql.execution.streaming.Offset) start.get()).json();
    Object rows = python.apply("rows\n" + first + "\n" + end.json());
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, (LogicalPlan) plan.transform(new StreamLeaf()));
  }
  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    throw new UnsupportedOperationException("the first batch has no start");
  }
  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) { return new StreamOffset(json); }
  public void commit(org.apache.spark.sql.execution.streaming.Offset end) {}
  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) {}
  public void stop() {}
}
