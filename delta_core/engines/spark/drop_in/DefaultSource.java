package delta;
import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The format "delta", which Spark finds by the name of this class.
 */
public class DefaultSource implements RelationProvider, CreatableRelationProvider, StreamSourceProvider,
    StreamSinkProvider, TableProvider {
  // as they were spelled: names of constraints and of columns are a part of some
  private static Map given(scala.collection.immutable.Map options) {
    Object spelled = options instanceof org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
      ? ((org.apache.spark.sql.catalyst.util.CaseInsensitiveMap) options).originalMap() : options;
    return CollectionConverters.asJava((scala.collection.immutable.Map) spelled);
  }
  private static Object python(String kind, SQLContext context, scala.collection.immutable.Map options, Object[] more) {
    ArrayList request = new ArrayList(Arrays.asList(new Object[]{kind, context.sparkSession(), given(options)}));
    request.addAll(Arrays.asList(more));
    return Python.call(request.toArray());
  }
  public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map options) {
    return new Rows(context, python("read", context, options, new Object[]{}));
  }
  public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset data) {
    python("write", context, options, new Object[]{mode.name(), data});
    return new Rows(context, data);
  }

  // --- streams: their relation is replaced before Spark makes a source of it ---

  public scala.Tuple2 sourceSchema(SQLContext context, scala.Option schema, String name,
                                   scala.collection.immutable.Map options) {
    // that of an entry of the catalog is empty
    if (schema.isDefined() && ((StructType) schema.get()).length() > 0) Python.call(new Object[]{"reject_schema"});
    return new scala.Tuple2("delta", ((Dataset) python("stream", context, options, new Object[]{})).schema());
  }
  public org.apache.spark.sql.execution.streaming.Source createSource(
      SQLContext context, String folder, scala.Option schema, String name, scala.collection.immutable.Map options) {
    throw new IllegalStateException("The stream was not planned by delta_core.");
  }
  public org.apache.spark.sql.execution.streaming.Sink createSink(
      SQLContext context, scala.collection.immutable.Map options, scala.collection.immutable.Seq partitions, OutputMode mode) {
    HashMap given = new HashMap(given(options));
    Python.call(new Object[]{"sink", given, mode.toString()});
    return new Sink(given, new ArrayList(CollectionConverters.asJava(partitions)), mode.toString());
  }

  // --- what makes Spark look tables of this format up in the catalog, and read and write paths as above ---

  public StructType inferSchema(CaseInsensitiveStringMap options) { return new StructType(); }
  public Table getTable(StructType schema, Transform[] partitions, Map properties) { return new PathTable(); }
  public static class PathTable implements Table {
    public String name() { return "delta"; }
    public StructType schema() { return new StructType(); }
    public Set capabilities() { return new HashSet(); }
  }
}
