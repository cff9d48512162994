/**
 * An expression that Spark analyzed, as JSON like that of a filter: the parts that Python can't evaluate are calls, kept here.
 */
public class Analyzed extends FilterText {
  private final org.apache.spark.sql.classic.SparkSession session;
  private final ArrayList calls = new ArrayList();
  private final ArrayList columns = new ArrayList();
  private String text, whole;
  private boolean isDeterministic, hasQuery;
  private Analyzed(org.apache.spark.sql.classic.SparkSession session) { this.session = session; }
  // rows: those on which it is evaluated; selected: a selection of it alone from them; type: JSON of the one that it is cast to,
  // as values are cast that are assigned, empty for its own. Null if it is more than an expression of a row, such as an aggregate
  public static Analyzed of(org.apache.spark.sql.Dataset rows, org.apache.spark.sql.Dataset selected, String type) {
    LogicalPlan below = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) selected).queryExecution().analyzed();
    if (!(plan instanceof org.apache.spark.sql.catalyst.plans.logical.Project)) return null;
    LogicalPlan child = ((org.apache.spark.sql.catalyst.plans.logical.Project) plan).child();
    if (!child.output().equals(below.output()) || child.getClass() != below.getClass()) return null;
    Analyzed made = new Analyzed(((org.apache.spark.sql.classic.Dataset) rows).sparkSession());
    scala.collection.Iterator it = below.output().iterator();
    while (it.hasNext()) made.columns.add(it.next());
    Alias named = (Alias) ((org.apache.spark.sql.catalyst.plans.logical.Project) plan).projectList().apply(0);
    DataType own = ((Expression) (Object) named.child()).dataType();
    if (!type.isEmpty() && !Cast$.MODULE$.canAnsiCast(own, DataType$.MODULE$.fromJson(type))) return null;
    Active active = new Active(made.session);
    try { made.take(named, type); } finally { active.end(); }
    return made;
  }
  private void take(Alias named, String type) {
    Expression e = (Expression) (Object) named.child();
    if (!type.isEmpty() && !e.dataType().equals(DataType$.MODULE$.fromJson(type))) {
      e = new Cast(e, DataType$.MODULE$.fromJson(type), scala.Option.apply(org.apache.spark.sql.internal.SQLConf$.MODULE$.get()
        .sessionLocalTimeZone()), EvalMode$.MODULE$.ANSI());
    }
    // the time of the statement, not of each job that evaluates a part of it
    LogicalPlan now = org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime$.MODULE$.apply(alone(named, e));
    now = org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$.MODULE$.apply(now);
    e = (Expression) expression(now).transformUp(new Inlined(new HashMap()));
    isDeterministic = e.deterministic();
    hasQuery = SubqueryExpression$.MODULE$.hasSubquery(e);
    StringBuilder out = new StringBuilder();
    write(simple(alone(named, e), e), out);
    text = out.toString();
    out = new StringBuilder();
    other(e, out);
    whole = out.toString();
  }
  private static Expression expression(LogicalPlan plan) {
    scala.collection.immutable.Seq list = ((org.apache.spark.sql.catalyst.plans.logical.Project) plan).projectList();
    return (Expression) (Object) ((Alias) list.apply(0)).child();
  }
  private static LogicalPlan alone(Alias named, Expression e) {
    Object alias = named.withNewChildren(TableFiles.seq(Collections.singletonList(e)));
    return new org.apache.spark.sql.catalyst.plans.logical.Project(TableFiles.seq(Collections.singletonList(alias)),
      new org.apache.spark.sql.catalyst.plans.logical.OneRowRelation());
  }
  // with constants calculated, and columns compared as they are: what prunes files
  private static Expression simple(LogicalPlan plan, Expression given) {
    try {
      LogicalPlan made = org.apache.spark.sql.catalyst.optimizer.ConstantFolding$.MODULE$.apply(plan);
      made = org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison$.MODULE$.apply(made);
      return expression(org.apache.spark.sql.catalyst.optimizer.ConstantFolding$.MODULE$.apply(made));
    } catch (RuntimeException e) { return given; } // it fails on rows, if there are any
  }
  public String text() { return text; }
  // the expression as one call
  public String whole() { return whole; }
  public boolean isDeterministic() { return isDeterministic; }
  public boolean hasQuery() { return hasQuery; }
  public Call call(int i) { return (Call) calls.get(i); }
  protected void write(Object node, StringBuilder out) {
    Expression e = (Expression) node;
    boolean isOpaque = e instanceof BinaryComparison && !comparable(((BinaryComparison) e).left(), ((BinaryComparison) e).right())
      || e instanceof In && !comparable(((In) e).value(), ((In) e).value())
      || e instanceof StartsWith && !comparable(((StartsWith) e).left(), ((StartsWith) e).right())
      || e instanceof Literal && !known(e.dataType()) && !(e.dataType() instanceof NullType);
    if (isOpaque) other(e, out); else super.write(e, out);
  }
  private static boolean comparable(Object a, Object b) {
    DataType t = ((Expression) a).dataType();
    return known(t) && t.equals(((Expression) b).dataType());
  }
  // types whose values Python compares as Spark does
  private static boolean known(DataType t) {
    return plain(t) && (t instanceof NumericType || t instanceof StringType || t instanceof BinaryType || t instanceof BooleanType
      || t instanceof DateType || t instanceof TimestampType || t instanceof TimestampNTZType);
  }
  protected String name(AttributeReference column) { return String.valueOf(place(column)); }
  private int place(Attribute column) {
    for (int i = 0; i < columns.size(); i++) {
      if (((Attribute) columns.get(i)).exprId().equals(column.exprId())) return i;
    }
    return -1;
  }
  // its number, type and text, then the places of the columns that it reads
  protected void other(Expression e, StringBuilder out) {
    ArrayList own = new ArrayList();
    out.append("[\"call\",").append(calls.size()).append(",").append(e.dataType().json()).append(",");
    quote(e.sql(), out);
    scala.collection.Iterator it = e.references().iterator();
    while (it.hasNext()) {
      Attribute column = (Attribute) it.next();
      out.append(",").append(place(column));
      own.add(column);
    }
    calls.add(new Call(session, e, own));
    out.append("]");
  }
}
