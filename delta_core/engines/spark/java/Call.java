/**
 * An analyzed expression that Spark alone evaluates, to be evaluated on other columns than those it was analyzed on.
 */
public class Call {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final Expression expression;
  private final ArrayList columns;
  public Call(org.apache.spark.sql.classic.SparkSession session, Expression expression, ArrayList columns) {
    this.session = session; this.expression = expression; this.columns = columns;
  }
  // a column with this expression in place of a name; arguments: SQL in the order of the columns, escaped as in a URL
  public Column embedded(Column column, String name, String arguments) throws java.io.IOException {
    HashMap values = new HashMap();
    String[] texts = arguments.split("&", -1);
    for (int i = 0; i < columns.size(); i++) {
      Attribute own = (Attribute) columns.get(i);
      Expression value = expression(session, functions.expr(java.net.URLDecoder.decode(texts[i], "UTF-8")));
      boolean untyped = value instanceof Literal && value.dataType() instanceof NullType;
      values.put(new Long(own.exprId().id()), untyped ? new Literal(null, own.dataType()) : value);
    }
    Expression placed = (Expression) expression.transform(new Placed(null, values, null));
    return ExpressionUtils.column((Expression) expression(session, column).transform(new Placed(name, null, placed)));
  }
  // a column that is not analyzed yet, as the session parses it
  static Expression expression(org.apache.spark.sql.classic.SparkSession session, Column column) {
    Active active = new Active(session);
    try { return org.apache.spark.sql.classic.ColumnNodeToExpressionConverter$.MODULE$.apply(column.node()); }
    finally { active.end(); }
  }
}
