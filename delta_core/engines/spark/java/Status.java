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

public class Status extends FileStatus {
  private final transient Found from;
  private final transient int file;
  public Status(Found from, int file) {
    super(from.lengths[file], false, 1, 134217728L, 0L, null);
    this.from = from; this.file = file;
  }
  public Path getPath() { return new Path(from.place(file)); }
}
