package delta;
import java.util.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The Python process of the driver, which opens tables, plans their rows and commits.
 */
public class Python {
  private static volatile java.util.function.Function function;

  private static final Map sessions = Collections.synchronizedMap(new WeakHashMap());

  public void connect(java.util.function.Function function) { Python.function = function; }
  static void extend(Object extensions) { sessions.put(extensions, Boolean.TRUE); }
  /** Whether a session has the extension and the catalog of the format. */
  public boolean serves(org.apache.spark.sql.classic.SparkSession session) {
    return sessions.containsKey(session.extensions())
      && session.sessionState().catalogManager().v2SessionCatalog() instanceof Catalog;
  }
  static Object call(Object[] request) {
    if (function == null) {
      throw new IllegalStateException("The Python process that configured the format delta is not connected.");
    }
    return function.apply(new ArrayList(Arrays.asList(request)));
  }
  static scala.collection.immutable.Seq seq(List values) { return CollectionConverters.asScala(values).toSeq(); }

  /** Returns a part of a node, whose class may differ between versions of Spark; null if it has none of the name. */
  static Object part(Object node, String name) {
    scala.Product product = (scala.Product) node;
    for (int i = 0; i < product.productArity(); i++) {
      if (product.productElementName(i).equals(name)) return product.productElement(i);
    }
    return null;
  }

  /** Returns a node with another value for a part. */
  static LogicalPlan with(LogicalPlan node, String name, Object value) {
    scala.Product product = (scala.Product) node;
    Object[] parts = new Object[product.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = product.productElementName(i).equals(name) ? value : product.productElement(i);
    }
    return (LogicalPlan) node.makeCopy(parts);
  }

  /** Returns the plan of rows of Python under the attributes that a relation has had. */
  static LogicalPlan under(Object rows, scala.collection.immutable.Seq output, String name) {
    return under(((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed(), output, name);
  }
  static LogicalPlan under(LogicalPlan plan, scala.collection.immutable.Seq output, String name) {
    List wanted = CollectionConverters.asJava(output), found = CollectionConverters.asJava(plan.output());
    // a feed of changes has columns after those of its table
    boolean feed = found.size() > wanted.size() && ((Attribute) found.get(wanted.size())).name().equals("_change_type");
    boolean same = feed || wanted.size() == found.size();
    ArrayList columns = new ArrayList();
    for (int i = 0; same && i < wanted.size(); i++) {
      Attribute as = (Attribute) wanted.get(i), is = (Attribute) found.get(i);
      same = as.name().equals(is.name()) && as.dataType().sameType(is.dataType());
      columns.add(new Alias(is, as.name(), as.exprId(), as.qualifier(), scala.Option.apply(null), seq(new ArrayList())));
    }
    if (!same) throw new IllegalStateException("The schema of " + name + " changed while the query was planned. Run it again.");
    for (int i = wanted.size(); i < found.size(); i++) columns.add(found.get(i));
    return new Project(seq(columns), plan);
  }
}
