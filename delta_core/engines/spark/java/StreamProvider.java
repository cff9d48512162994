/**
 * The provider with which Spark makes the sources of streaming queries. Spark creates it by its name, so the Python function of a table is
 * found by a number.
 */
public class StreamProvider implements org.apache.spark.sql.sources.StreamSourceProvider {
  private static final Map tables = Collections.synchronizedMap(new HashMap());
  // for as long as the driver lives: Spark does not report that a streaming DataFrame is used no more
  static String add(StructType schema, java.util.function.Function python) {
    String number = UUID.randomUUID().toString();
    tables.put(number, new Object[]{schema, python});
    return number;
  }
  private static Object[] table(scala.collection.immutable.Map options) { return (Object[]) tables.get(options.apply("table")); }
  public scala.Tuple2 sourceSchema(org.apache.spark.sql.SQLContext context, scala.Option schema, String name,
                                   scala.collection.immutable.Map options) {
    return new scala.Tuple2("delta_core", table(options)[0]);
  }
  public org.apache.spark.sql.execution.streaming.Source createSource(
      org.apache.spark.sql.SQLContext context, String folder, scala.Option schema, String name,
      scala.collection.immutable.Map options) {
    Object[] table = table(options);
    // each query has a position of its own
    java.util.function.Function opened = (java.util.function.Function) ((java.util.function.Function) table[1]).apply("open");
    org.apache.spark.sql.classic.SparkSession session = (org.apache.spark.sql.classic.SparkSession) context.sparkSession();
    return new StreamSource(session, (StructType) table[0], opened, folder);
  }
}
