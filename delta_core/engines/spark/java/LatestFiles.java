/**
 * The rows of a table at the version that is the latest one when a query is planned, or at one that was requested:
 * `LatestRule` puts those rows in place of the relation that has this index. Two of one key are the same rows; a query reads
 * those of one table at one version.
 */
public class LatestFiles implements FileIndex {
  private final Path root;
  private final String key;
  final String table;
  final java.util.function.Function python;
  private final boolean fixed;
  private final HashMap rows = new HashMap();
  public LatestFiles(Path root, String table, String key, boolean fixed, java.util.function.Function python) {
    this.root = root; this.table = table; this.key = key; this.fixed = fixed; this.python = python;
  }
  // the rows of a version, with or without the struct _metadata; those of the last one are kept, with the files that its
  // filters found
  synchronized LogicalPlan rows(java.util.function.Function version, boolean metadata) {
    String kind = metadata ? "metadata " : "rows ", found = (String) version.apply("identity");
    Object[] last = (Object[]) rows.get(kind);
    if (last == null || !found.equals(last[0])) {
      Object made = python.apply(kind + version.apply("name"));
      last = new Object[]{found, ((org.apache.spark.sql.classic.Dataset) made).queryExecution().analyzed()};
      rows.put(kind, last);
    }
    return (LogicalPlan) last[1];
  }
  // Spark drops cached rows by this path: those of a version that was requested stay
  public scala.collection.immutable.Seq rootPaths() {
    return TableFiles.seq(Collections.singletonList(fixed ? root : new Path(root, "_delta_log")));
  }
  public StructType partitionSchema() { return new StructType(); }
  public void refresh() {}
  public long sizeInBytes() { return org.apache.spark.sql.internal.SQLConf$.MODULE$.get().defaultSizeInBytes(); }
  public String[] inputFiles() { throw unplanned(); }
  public scala.collection.immutable.Seq listFiles(scala.collection.immutable.Seq partitionFilters,
                                                  scala.collection.immutable.Seq dataFilters) { throw unplanned(); }
  private RuntimeException unplanned() {
    return new IllegalStateException("delta_core did not choose the version of " + root
      + ": spark.sql.optimizer.excludedRules may not contain " + LatestRule.NAME + ".");
  }
  public boolean equals(Object o) { return o == this || o instanceof LatestFiles && ((LatestFiles) o).key.equals(key); }
  public int hashCode() { return key.hashCode(); }
  public String toString() { return "delta_core " + root + (fixed ? "" : " (latest)"); }
}
