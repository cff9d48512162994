/**
 * Puts the rows of the latest version in place of relations that specify none: of one version in all parts of a query.
 */
public class LatestRule extends org.apache.spark.sql.catalyst.rules.Rule {
  static final String NAME = "delta_core_driver.LatestRule";
  private static final Map installed = Collections.synchronizedMap(new WeakHashMap());
  // by the query's tracker: its subqueries are optimized in calls of their own
  private static final Map queries = Collections.synchronizedMap(new WeakHashMap());
  public TreeNode apply(TreeNode plan) {
    return plan.exists(new IsLatest()) ? plan.transform(new LatestStep(versions(), "")) : plan;
  }
  public String ruleName() { return NAME; }
  private static Versions versions() {
    scala.Option tracker = org.apache.spark.sql.catalyst.QueryPlanningTracker$.MODULE$.get();
    if (tracker.isEmpty()) return new Versions();
    synchronized (queries) {
      Versions found = (Versions) queries.get(tracker.get());
      if (found == null) { found = new Versions(); queries.put(tracker.get(), found); }
      return found;
    }
  }
  static boolean isInstalled() { return !installed.isEmpty(); }
  public static void install(org.apache.spark.sql.classic.SparkSession session) {
    if (installed.put(session.extensions(), Boolean.TRUE) == null) session.extensions().injectOptimizerRule(new LatestMade());
  }
}
