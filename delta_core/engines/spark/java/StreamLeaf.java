/**
 * Marks the leaves of a batch's plan as a part of a stream.
 */
public class StreamLeaf extends scala.runtime.AbstractPartialFunction {
  // a range is what rows that fail are made of
  public boolean isDefinedAt(Object plan) {
    return plan instanceof LogicalRelation || plan instanceof org.apache.spark.sql.catalyst.plans.logical.Range;
  }
  public Object applyOrElse(Object plan, scala.Function1 otherwise) {
    return isDefinedAt(plan) ? Copy.with(plan, "isStreaming", Boolean.TRUE) : otherwise.apply(plan);
  }
}
