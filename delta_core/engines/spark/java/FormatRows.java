/**
 * The rows of a version of a table of another format: Python plans a scan of the columns that a query uses, for its
 * filters, and returns the rows as a Dataset. Spark tests the filters again.
 */
public class FormatRows extends org.apache.spark.sql.sources.BaseRelation
    implements org.apache.spark.sql.sources.CatalystScan {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final StructType schema;
  private final String name;
  private final long bytes;
  private final java.util.function.Function python;
  FormatRows(org.apache.spark.sql.classic.SparkSession session, StructType schema, String name, long bytes,
             java.util.function.Function python) {
    this.session = session; this.schema = schema; this.name = name; this.bytes = bytes; this.python = python;
  }
  public org.apache.spark.sql.SQLContext sqlContext() { return session.sqlContext(); }
  public StructType schema() { return schema; }
  public long sizeInBytes() { return bytes; }
  public boolean needConversion() { return false; }
  public org.apache.spark.rdd.RDD buildScan(scala.collection.immutable.Seq columns, scala.collection.immutable.Seq filters) {
    StringBuilder request = new StringBuilder("[[");
    for (int i = 0; i < columns.size(); i++) {
      if (i > 0) request.append(",");
      FilterText.quote(((Attribute) columns.apply(i)).name(), request);
    }
    request.append("],").append(FilterText.all(filters)).append("]");
    Object rows = python.apply(request.toString());
    return ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().toRdd();
  }
  public String toString() { return name; }
}
