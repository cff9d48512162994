public class Step extends scala.runtime.AbstractPartialFunction {
  static LogicalRelation relation(Object plan) {
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) return null;
    FileIndex index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return index instanceof TableFiles && !((TableFiles) index).isPlanned() ? (LogicalRelation) plan : null;
  }
  private static LogicalRelation below(Object plan) {
    return plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter
      ? relation(((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).child()) : null;
  }
  public boolean isDefinedAt(Object plan) { return relation(plan) != null || below(plan) != null; }
  public Object applyOrElse(Object plan, scala.Function1 otherwise) {
    if (relation(plan) != null) return planned(relation(plan), null);
    LogicalRelation below = below(plan);
    if (below == null) return otherwise.apply(plan);
    Expression condition = ((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).condition();
    return Copy.with(plan, "child", planned(below, FilterText.all(TableFiles.seq(Collections.singletonList(condition)))));
  }
  private static Object planned(LogicalRelation node, String filters) {
    TableFiles all = (TableFiles) ((HadoopFsRelation) node.relation()).location();
    long width = 8L;
    scala.collection.Iterator it = node.output().iterator();
    while (it.hasNext()) width += ((Expression) it.next()).dataType().defaultSize();
    return Copy.with(node, "relation", Copy.with(node.relation(), "location", all.planned(filters, width)));
  }
}
