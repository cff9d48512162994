package delta;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.types.StructType;

/**
 * The rows of a version of a table, as the relation that Spark's readers and writers of the first kind expect.
 */
public class Rows extends org.apache.spark.sql.sources.BaseRelation {
  private final SQLContext context;
  final Dataset rows;
  Rows(SQLContext context, Object rows) { this.context = context; this.rows = (Dataset) rows; }
  public SQLContext sqlContext() { return context; }
  public StructType schema() { return rows.schema(); }
}
