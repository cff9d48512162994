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
      (org.apache.spark.sql.catalyst.plans.logical.LogicalPlan) rows(batch.queryExecution().toRdd(), batch);
    Object rows = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(batch.sparkSession(), plan);
    Python.call(new Object[]{"batch", batch.sparkSession(), options, partitions, mode, query, new Long(number), rows});
  }
  // LogicalRDD.fromDataset, which has one more argument in later versions, with a default
  private static Object rows(Object rdd, Object batch) {
    org.apache.spark.sql.execution.LogicalRDD$ maker = org.apache.spark.sql.execution.LogicalRDD$.MODULE$;
    java.lang.reflect.Method[] methods = maker.getClass().getMethods();
    try {
      for (int i = 0; i < methods.length; i++) {
        if (!methods[i].getName().equals("fromDataset")) continue;
        ArrayList given = new ArrayList(Arrays.asList(new Object[]{rdd, batch, Boolean.FALSE}));
        for (int n = 4; n <= methods[i].getParameterTypes().length; n++) {
          given.add(maker.getClass().getMethod("fromDataset$default$" + n, new Class[0]).invoke(maker, new Object[0]));
        }
        return methods[i].invoke(maker, given.toArray());
      }
    }
    catch (java.lang.reflect.InvocationTargetException e) { throw new IllegalStateException(e.getCause()); }
    catch (ReflectiveOperationException e) { throw new IllegalStateException(e); }
    throw new IllegalStateException("This version of Spark has no LogicalRDD.fromDataset.");
  }
  public String toString() { return "delta_core[" + options.get("path") + "]"; }
}
