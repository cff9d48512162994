/**
 * The word DEFAULT as a value of VALUES or of a selection: the defaults of the columns, as texts, in its place.
 */
public class Defaults {
  private static boolean isDefault(Object e) {
    if (!(e instanceof org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute)) return false;
    scala.collection.immutable.Seq parts = ((org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute) e).nameParts();
    return parts.size() == 1 && "DEFAULT".equalsIgnoreCase((String) parts.head());
  }
  private static scala.collection.immutable.Seq filled(Object session, scala.collection.immutable.Seq row, List texts, boolean named) throws Exception {
    ArrayList out = new ArrayList();
    for (int i = 0; i < row.size(); i++) {
      Object e = row.apply(i);
      if (i < texts.size() && isDefault(e)) {
        Expression value = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().sqlParser().parseExpression((String) texts.get(i));
        e = !named ? (Object) value : new Alias(value, "DEFAULT", NamedExpression$.MODULE$.newExprId(),
          TableFiles.seq(new ArrayList()), scala.Option.apply(null), TableFiles.seq(new ArrayList()));
      }
      out.add(e);
    }
    return TableFiles.seq(out);
  }
  // a plan that is not analyzed; texts: the defaults of the columns by their places
  public static LogicalPlan filled(org.apache.spark.sql.SparkSession session, LogicalPlan plan, List texts) throws Exception {
    if (plan instanceof org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable) {
      org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable table = (org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable) plan;
      ArrayList rows = new ArrayList();
      for (int i = 0; i < table.rows().size(); i++) rows.add(filled(session, (scala.collection.immutable.Seq) table.rows().apply(i), texts, false));
      return table.copy(table.names(), TableFiles.seq(rows));
    }
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Project) {
      org.apache.spark.sql.catalyst.plans.logical.Project rows = (org.apache.spark.sql.catalyst.plans.logical.Project) plan;
      return rows.copy(filled(session, rows.projectList(), texts, true), (LogicalPlan) (Object) rows.child());
    }
    return plan;
  }
}
