package delta;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;

/**
 * The extensions that a session loads by the setting spark.sql.extensions.
 */
public class Extensions extends scala.runtime.AbstractFunction1 {
  public Object apply(Object found) {
    SparkSessionExtensions extensions = (SparkSessionExtensions) found;
    Python.extend(extensions);
    extensions.injectParser(new scala.runtime.AbstractFunction2() {
      public Object apply(Object session, Object parser) { return Parser.around((SparkSession) session, parser); }
    });
    scala.runtime.AbstractFunction1 rule = new scala.runtime.AbstractFunction1() {
      public Object apply(Object session) { return new Tables((SparkSession) session); }
    };
    String[] functions = {"table_changes", "table_changes_by_path"};
    for (int i = 0; i < functions.length; i++) {
      extensions.injectTableFunction(new scala.Tuple3(
        new org.apache.spark.sql.catalyst.FunctionIdentifier(functions[i]),
        new org.apache.spark.sql.catalyst.expressions.ExpressionInfo("delta.Changes", functions[i]),
        new Changes(functions[i])));
    }
    extensions.injectHintResolutionRule(rule);  // before Spark looks for tables: conditions are as they were written
    extensions.injectResolutionRule(rule);
    return scala.runtime.BoxedUnit.UNIT;
  }
}
