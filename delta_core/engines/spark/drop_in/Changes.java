package delta;
import java.util.*;
import org.apache.spark.sql.types.*;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The table functions of the change data feed: the name or path of a table, and one or two versions or times.
 */
public class Changes extends scala.runtime.AbstractFunction1 {
  private final String name;
  Changes(String name) { this.name = name; }
  public Object apply(Object arguments) {
    List given = CollectionConverters.asJava((scala.collection.immutable.Seq) arguments);
    ArrayList bounds = new ArrayList();
    if (given.size() < 2 || given.size() > 3) Python.call(new Object[]{"reject", name + " with " + given.size() + " arguments"});
    for (int i = 1; i < given.size(); i++) {
      boolean version = ((org.apache.spark.sql.catalyst.expressions.Expression) given.get(i)).dataType() instanceof IntegralType;
      bounds.add(Arrays.asList(new Object[]{Boolean.valueOf(version), text((org.apache.spark.sql.catalyst.expressions.Expression) given.get(i))}));
    }
    Object rows = Python.call(new Object[]{"changes", org.apache.spark.sql.classic.SparkSession.active(), name,
      text((org.apache.spark.sql.catalyst.expressions.Expression) given.get(0)), bounds});
    return ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
  }
  private String text(org.apache.spark.sql.catalyst.expressions.Expression e) {
    Object found = null;
    if (e.foldable() && e.resolved()) {
      found = new org.apache.spark.sql.catalyst.expressions.Cast(e, StringType$.MODULE$, scala.Option.apply(
        org.apache.spark.sql.internal.SQLConf$.MODULE$.get().sessionLocalTimeZone()), org.apache.spark.sql.catalyst.expressions.EvalMode$.MODULE$.ANSI()).eval(null);
    }
    if (found == null) Python.call(new Object[]{"reject", name + " with an argument that is no constant"});
    return found.toString();
  }
}
