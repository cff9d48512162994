package delta_core_driver;
import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.objects.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

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
