/**
 * Puts the files that a filter needs in place of all before Spark looks at sizes: so joins are planned with the size that
 * is really read, and the filters that a join makes for its other side look at the same files as the join.
 */
public class PlanFiles extends org.apache.spark.sql.catalyst.rules.Rule {
  private static final Map installed = Collections.synchronizedMap(new WeakHashMap());
  // structs are narrowed first, as Spark does after these rules: a relation's size is for the columns that it has then
  public TreeNode apply(TreeNode plan) {
    if (!plan.exists(new Concerns())) return plan;
    TreeNode narrowed = org.apache.spark.sql.execution.datasources.SchemaPruning$.MODULE$.apply((LogicalPlan) plan);
    return narrowed.transform(new Step());
  }
  public String ruleName() { return "delta_core_driver.PlanFiles"; }
  // a session looks its extensions up for every query, and shares them with the sessions made of it
  public static void install(org.apache.spark.sql.classic.SparkSession session) {
    if (installed.put(session.extensions(), Boolean.TRUE) == null) session.extensions().injectPreCBORule(new Made());
  }
}
