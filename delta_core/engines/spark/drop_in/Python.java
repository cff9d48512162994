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
      throw new IllegalStateException("No Python process is connected to the format delta. Call delta_core.spark.configure(SparkSession.builder).getOrCreate() in the program.");
    }
    try { return function.apply(new ArrayList(Arrays.asList(request))); }
    catch (RuntimeException e) {
      if (isConnect()) org.apache.spark.unsafe.Platform.throwException(described(e));
      throw e;
    }
  }
  // whether a client of Spark Connect waits, which gets no more of an exception than its class, condition and message
  private static boolean isConnect() {
    StackTraceElement[] frames = new Throwable().getStackTrace();
    for (int i = 0; i < frames.length; i++) if (frames[i].getClassName().startsWith("org.apache.spark.sql.connect.")) return true;
    return false;
  }
  private static Throwable described(RuntimeException e) {
    String[] found = ((String) function.apply(new ArrayList(Arrays.asList(new Object[]{"failure", String.valueOf(e.getMessage())})))).split("\n", 3);
    if (found.length < 3) return e;
    scala.Option cause = scala.Option.apply(e), none = scala.Option.apply(null), condition = found[1].isEmpty() ? none : scala.Option.apply(found[1]);
    if (found[0].equals("IllegalArgumentException")) return new IllegalArgumentException(found[2], e);
    if (found[0].equals("UnsupportedOperationException")) return new UnsupportedOperationException(found[2], e);
    scala.collection.immutable.Map parameters = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    org.apache.spark.QueryContext[] context = new org.apache.spark.QueryContext[0];
    if (found[0].equals("AnalysisException")) {
      return new org.apache.spark.sql.AnalysisException(found[2], none, none, cause, condition, parameters, context);
    }
    return new org.apache.spark.SparkException(found[2], e, condition, parameters, context);
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
    // a leaf has metadata columns in every version of Spark
    if (plan instanceof org.apache.spark.sql.execution.datasources.LogicalRelation && wanted.size() == found.size()) {
      return with(plan, "output", output);
    }
    for (int i = wanted.size(); i < found.size(); i++) columns.add(found.get(i));
    return new Project(seq(columns), plan);
  }
}
