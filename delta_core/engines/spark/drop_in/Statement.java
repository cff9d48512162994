package delta;
import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.*;
import scala.collection.immutable.Seq;

/**
 * A statement that Python runs, once, when Spark runs commands: EXPLAIN shows it only.
 */
public class Statement extends LogicalPlan implements org.apache.spark.sql.execution.command.RunnableCommand {
  /** The state that copies of a statement share: Spark makes them of the values of productElement. */
  public static class Content {
    final String kind;
    final Object what;
    final List target;
    final boolean saves;
    final Seq output;
    // kind: "text" of a statement, or "plan", a node of Spark about a target; saves: whether saveAsTable made it; schema: of
    // the result, as JSON
    Content(String kind, Object what, List target, boolean saves, String schema) {
      this.kind = kind; this.what = what; this.target = target; this.saves = saves;
      output = org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes((StructType) DataType$.MODULE$.fromJson(schema));
    }
    LogicalPlan query() {
      if (kind.equals("text")) return null;
      Object found = Python.part(what, "query");
      if (found instanceof scala.Option) found = ((scala.Option) found).isDefined() ? ((scala.Option) found).get() : null;
      if (found == null) found = Python.part(what, "sourceTable");
      // the source of CREATE TABLE LIKE is a name in Spark 4.0
      return found instanceof LogicalPlan ? (LogicalPlan) found : null;
    }
    // whether a query has the word DEFAULT as a value, which Python replaces before Spark analyzes it
    boolean names(LogicalPlan query) {
      return ((Object) what).getClass().getSimpleName().equals("InsertIntoStatement")
        && java.util.regex.Pattern.compile("\\bDEFAULT\\b", java.util.regex.Pattern.CASE_INSENSITIVE).matcher(query.toString()).find();
    }
    public String toString() { return kind.equals("text") ? (String) what : ((TreeNode) what).nodeName() + " " + target; }
  }

  private final Content content;
  private final Seq patterns =
    Python.seq(Collections.singletonList(org.apache.spark.sql.catalyst.trees.TreePattern$.MODULE$.COMMAND()));
  public Statement(Content content) { this.content = content; }
  static Statement of(String kind, Object what, List target, boolean saves, String schema) {
    return new Statement(new Content(kind, what, target, saves, schema));
  }

  public Seq run(SparkSession session) {
    LogicalPlan query = content.query();
    // what is wrong with a query is Spark's own error
    Object analyzed = query == null || content.names(query) ? query : org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
      (org.apache.spark.sql.classic.SparkSession) session, query).queryExecution().analyzed();
    Object rows = Python.call(new Object[]{
      "run", session, content.kind, content.what, content.target, analyzed, Boolean.valueOf(content.saves)});
    return Python.seq(rows == null ? new ArrayList() : ((Dataset) rows).collectAsList());
  }
  public Seq output() { return content.output; }
  public Seq children() { return Python.seq(new ArrayList()); }
  public LogicalPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) { return this; }
  public Statistics stats() { return Statistics$.MODULE$.DUMMY(); }
  public org.apache.spark.sql.catalyst.expressions.AttributeSet producedAttributes() { return outputSet(); }
  public Seq nodePatterns() { return patterns; }
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(Seq patterns) {}
  public String nodeName() { return "DeltaStatement"; }
  public String productPrefix() { return nodeName(); }
  public int productArity() { return 1; }
  public Object productElement(int n) { return content; }
  public String productElementName(int n) { return "content"; }
  public boolean canEqual(Object other) { return other instanceof Statement; }
  public boolean equals(Object other) { return other instanceof Statement && ((Statement) other).content == content; }
  public int hashCode() { return System.identityHashCode(content); }
}
