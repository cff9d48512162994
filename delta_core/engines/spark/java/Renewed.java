/**
 * Returns a plan with other attributes, for a query that contains the same plan already.
 */
public class Renewed extends scala.runtime.AbstractPartialFunction {
  static LogicalPlan of(LogicalPlan plan) {
    return (LogicalPlan) plan.transformUpWithNewOutput(new Renewed(), plan.transformUpWithNewOutput$default$2(),
      plan.transformUpWithNewOutput$default$3());
  }
  public boolean isDefinedAt(Object node) {
    return node instanceof org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
      || node instanceof org.apache.spark.sql.catalyst.plans.logical.Project;
  }
  public Object applyOrElse(Object found, scala.Function1 otherwise) {
    if (!isDefinedAt(found)) return otherwise.apply(found);
    LogicalPlan node = (LogicalPlan) found, other;
    if (node instanceof org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation) {
      other = ((org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation) node).newInstance();
    } else {
      org.apache.spark.sql.catalyst.plans.logical.Project project = (org.apache.spark.sql.catalyst.plans.logical.Project) node;
      ArrayList columns = new ArrayList();
      for (Object column : CollectionConverters.asJava(project.projectList())) {
        columns.add(column instanceof Alias ? ((Alias) column).newInstance() : column);
      }
      other = new org.apache.spark.sql.catalyst.plans.logical.Project(TableFiles.seq(columns), project.child());
    }
    ArrayList pairs = new ArrayList();
    for (int i = 0; i < node.output().size(); i++) pairs.add(new scala.Tuple2(node.output().apply(i), other.output().apply(i)));
    return new scala.Tuple2(other, TableFiles.seq(pairs));
  }
}
