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

public class Bind extends scala.runtime.AbstractPartialFunction {
  private final StructType schema;
  public Bind(StructType schema) { this.schema = schema; }
  public boolean isDefinedAt(Object e) { return e instanceof AttributeReference; }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!(e instanceof AttributeReference)) return otherwise.apply(e);
    int i = schema.fieldIndex(((AttributeReference) e).name());
    return new BoundReference(i, schema.fields()[i].dataType(), true);
  }
}
