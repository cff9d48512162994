package delta;
import java.util.*;

/**
 * Writes the batches of a stream, each as a commit.
 */
public class Sink implements org.apache.spark.sql.execution.streaming.Sink {
  private final Map options;
  private final List partitions;
  private final String mode;
  Sink(Map options, List partitions, String mode) { this.options = options; this.partitions = partitions; this.mode = mode; }
  public void addBatch(long number, org.apache.spark.sql.Dataset data) {
    org.apache.spark.sql.classic.Dataset batch = (org.apache.spark.sql.classic.Dataset) data;
    String query = batch.sparkSession().sparkContext().getLocalProperty("sql.streaming.queryId");
    // the plan of a batch is for one run as it is: whatever is added to it has to be above its rows
    org.apache.spark.sql.catalyst.plans.logical.LogicalPlan plan =
      org.apache.spark.sql.execution.LogicalRDD$.MODULE$.fromDataset(batch.queryExecution().toRdd(), batch, false);
    Object rows = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(batch.sparkSession(), plan);
    Python.call(new Object[]{"batch", batch.sparkSession(), options, partitions, mode, query, new Long(number), rows});
  }
  public String toString() { return "delta_core[" + options.get("path") + "]"; }
}
