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

public class FilesIterator extends scala.collection.AbstractIterator {
  private final Files files;
  private int at = 0;
  public FilesIterator(Files files) { this.files = files; }
  public boolean hasNext() { return at < files.length(); }
  public Object next() { return files.apply(at++); }
}
