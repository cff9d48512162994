/**
 * The word DEFAULT as a value of VALUES or of a selection, in plans that are not analyzed.
 */
public class Defaults {
  private static boolean isDefault(Object e) {
    if (!(e instanceof org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute)) return false;
    scala.collection.immutable.Seq parts = ((org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute) e).nameParts();
    return parts.size() == 1 && "DEFAULT".equalsIgnoreCase((String) parts.head());
  }
  // the rows of values that a plan has, none for other plans; a selection from rows with a column of this name has the column
  private static scala.collection.immutable.Seq rows(org.apache.spark.sql.SparkSession session, LogicalPlan plan) {
    if (plan instanceof org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable)
      return ((org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable) plan).rows();
    ArrayList found = new ArrayList();
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Project) {
      scala.collection.immutable.Seq values = ((org.apache.spark.sql.catalyst.plans.logical.Project) plan).projectList();
      if (!places(values).isEmpty() && !hasColumn(session, (LogicalPlan) (Object) ((org.apache.spark.sql.catalyst.plans.logical.Project) plan).child())) found.add(values);
    }
    return TableFiles.seq(found);
  }
  private static boolean hasColumn(org.apache.spark.sql.SparkSession session, LogicalPlan child) {
    scala.collection.immutable.Seq output = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
      (org.apache.spark.sql.classic.SparkSession) session, child).queryExecution().analyzed().output();
    for (int i = 0; i < output.size(); i++) if (((NamedExpression) output.apply(i)).name().equalsIgnoreCase("DEFAULT")) return true;
    return false;
  }
  private static List places(scala.collection.immutable.Seq row) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < row.size(); i++) if (isDefault(row.apply(i))) found.add(Integer.valueOf(i));
    return found;
  }
  // the places of the columns that have the word in some row
  public static List places(org.apache.spark.sql.SparkSession session, LogicalPlan plan) {
    TreeSet found = new TreeSet();
    scala.collection.immutable.Seq rows = rows(session, plan);
    for (int i = 0; i < rows.size(); i++) found.addAll(places((scala.collection.immutable.Seq) rows.apply(i)));
    return new ArrayList(found);
  }
  private static scala.collection.immutable.Seq filled(org.apache.spark.sql.SparkSession session, scala.collection.immutable.Seq row, List texts, boolean named) throws Exception {
    ArrayList out = new ArrayList(CollectionConverters.asJava(row));
    Iterator it = places(row).iterator();
    while (it.hasNext()) {
      int i = ((Integer) it.next()).intValue();
      Expression value = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().sqlParser().parseExpression((String) texts.get(i));
      out.set(i, !named ? (Object) value : new Alias(value, "DEFAULT", NamedExpression$.MODULE$.newExprId(),
        TableFiles.seq(new ArrayList()), scala.Option.apply(null), TableFiles.seq(new ArrayList())));
    }
    return TableFiles.seq(out);
  }
  // a plan that has the word; texts: the defaults of the columns by their places, null for columns without the word
  public static LogicalPlan filled(org.apache.spark.sql.SparkSession session, LogicalPlan plan, List texts) throws Exception {
    if (plan instanceof org.apache.spark.sql.catalyst.plans.logical.Project) {
      org.apache.spark.sql.catalyst.plans.logical.Project rows = (org.apache.spark.sql.catalyst.plans.logical.Project) plan;
      return rows.copy(filled(session, rows.projectList(), texts, true), (LogicalPlan) (Object) rows.child());
    }
    org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable table = (org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable) plan;
    ArrayList rows = new ArrayList();
    for (int i = 0; i < table.rows().size(); i++) rows.add(filled(session, (scala.collection.immutable.Seq) table.rows().apply(i), texts, false));
    return table.copy(table.names(), TableFiles.seq(rows));
  }
}
