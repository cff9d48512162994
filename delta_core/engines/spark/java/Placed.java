/**
 * Puts expressions in the place of columns: one of a name that is not resolved yet, or several by the ids of resolved ones.
 */
public class Placed extends scala.runtime.AbstractPartialFunction {
  private final String name;
  private final HashMap values;
  private final Expression value;
  public Placed(String name, HashMap values, Expression value) { this.name = name; this.values = values; this.value = value; }
  public boolean isDefinedAt(Object e) { return found(e) != null; }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    Expression other = found(e);
    return other == null ? otherwise.apply(e) : other;
  }
  private Expression found(Object e) {
    if (values != null) {
      return e instanceof AttributeReference ? (Expression) values.get(new Long(((Attribute) e).exprId().id())) : null;
    }
    boolean named = e instanceof org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
      && ((org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute) e).name().equals(name);
    return named ? value : null;
  }
}
