package delta;
import java.util.*;
import org.apache.spark.sql.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The format "delta", which Spark finds by the name of this class. Python opens tables and commits; the rows of a relation are
 * a plan that Python made, which a rule puts in the relation's place.
 */
public class DefaultSource implements RelationProvider, CreatableRelationProvider {
  private static volatile java.util.function.Function python;

  public void connect(org.apache.spark.sql.classic.SparkSession session, java.util.function.Function function) {
    python = function;
    session.extensions().injectResolutionRule(new Made());
    session.extensions().injectHintResolutionRule(new Made());  // before Spark looks for tables named by paths
  }
  private static Object ask(Object[] request) { return python.apply(new ArrayList(Arrays.asList(request))); }

  public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map options) {
    Object rows = ask(new Object[]{"read", context.sparkSession(), CollectionConverters.asJava(options)});
    return new Rows(context, ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed());
  }
  public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset data) {
    ask(new Object[]{"write", context.sparkSession(), CollectionConverters.asJava(options), mode.name(), data});
    return new Rows(context, ((org.apache.spark.sql.classic.Dataset) data).queryExecution().analyzed());
  }

  /** A version of a table. */
  public static class Rows extends BaseRelation {
    private final SQLContext context;
    final LogicalPlan plan;
    Rows(SQLContext context, LogicalPlan plan) { this.context = context; this.plan = plan; }
    public SQLContext sqlContext() { return context; }
    public StructType schema() { return plan.schema(); }
  }

  /** Makes the rule of a session. */
  public static class Made extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) { return new Resolve((SparkSession) session); }
  }

  /** Puts the plans of tables in place of their relations, and rejects statements that nothing here can run. */
  public static class Resolve extends org.apache.spark.sql.catalyst.rules.Rule {
    private final SparkSession session;
    Resolve(SparkSession session) { this.session = session; }
    public TreeNode apply(TreeNode plan) { return plan.transform(new Replace(session)); }
    public String ruleName() { return "delta.DefaultSource.Resolve"; }
  }

  /** Whether a node is a relation of ours. */
  public static class Ours extends scala.runtime.AbstractFunction1 {
    static boolean is(Object node) {
      return path(node) != null || node instanceof LogicalRelation && ((LogicalRelation) node).relation() instanceof Rows;
    }
    // of delta.`path`, null for others: a path has a slash, which names of tables have not
    static String path(Object node) {
      if (!(node instanceof org.apache.spark.sql.catalyst.analysis.UnresolvedRelation)) return null;
      List parts = CollectionConverters.asJava(
        ((org.apache.spark.sql.catalyst.analysis.UnresolvedRelation) node).multipartIdentifier());
      if (parts.size() != 2 || !"delta".equalsIgnoreCase((String) parts.get(0))) return null;
      return ((String) parts.get(1)).indexOf('/') < 0 ? null : (String) parts.get(1);
    }
    public Object apply(Object node) { return Boolean.valueOf(is(node)); }
  }

  /** One node. */
  public static class Replace extends scala.runtime.AbstractPartialFunction {
    private final SparkSession session;
    Replace(SparkSession session) { this.session = session; }
    private static boolean changes(Object node) {
      LogicalPlan target = null;
      if (node instanceof InsertIntoStatement) target = ((InsertIntoStatement) node).table();
      if (node instanceof DeleteFromTable) target = ((DeleteFromTable) node).table();
      if (node instanceof UpdateTable) target = ((UpdateTable) node).table();
      if (node instanceof MergeIntoTable) target = ((MergeIntoTable) node).targetTable();
      return target != null && target.exists(new Ours());
    }
    private static boolean creates(Object node) {
      if (!(node instanceof org.apache.spark.sql.execution.datasources.CreateTable)) return false;
      scala.Option provider = ((org.apache.spark.sql.execution.datasources.CreateTable) node).tableDesc().provider();
      return provider.isDefined() && "delta".equalsIgnoreCase((String) provider.get());
    }
    public boolean isDefinedAt(Object node) { return Ours.is(node) || changes(node) || creates(node); }
    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (changes(node) || creates(node)) ask(new Object[]{"reject", ((TreeNode) node).nodeName()});
      if (!Ours.is(node)) return otherwise.apply(node);
      if (Ours.path(node) != null) {
        HashMap options = new HashMap(((org.apache.spark.sql.catalyst.analysis.UnresolvedRelation) node).options());
        options.put("path", Ours.path(node));
        Object rows = ask(new Object[]{"read", session, options});
        return ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
      }
      LogicalRelation relation = (LogicalRelation) node;
      LogicalPlan plan = ((Rows) relation.relation()).plan;
      List wanted = CollectionConverters.asJava(relation.output()), found = CollectionConverters.asJava(plan.output());
      ArrayList columns = new ArrayList();
      for (int i = 0; i < wanted.size(); i++) {
        Attribute as = (Attribute) wanted.get(i);
        columns.add(new Alias((Expression) found.get(i), as.name(), as.exprId(), as.qualifier(), scala.Option.apply(null),
          seq(new ArrayList())));
      }
      return new Project(seq(columns), plan);
    }
    private static scala.collection.immutable.Seq seq(List values) {
      return CollectionConverters.asScala(values).toSeq();
    }
  }
}
