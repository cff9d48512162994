package delta;
import java.util.*;
import org.apache.spark.sql.RuntimeConfig;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Puts the rows of tables in place of their relations, and statements that Python runs in place of Spark's commands.
 */
public class Tables extends org.apache.spark.sql.catalyst.rules.Rule {
  private static final String NONE = "{\"type\":\"struct\",\"fields\":[]}";
  private final SparkSession session;
  Tables(SparkSession session) { this.session = session; }
  public TreeNode apply(TreeNode plan) { return plan.transform(new Step()); }
  public String ruleName() { return "delta.Tables"; }

  private class Step extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return replaced((LogicalPlan) node) != null; }
    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      LogicalPlan found = replaced((LogicalPlan) node);
      return found == null ? otherwise.apply(node) : found;
    }
  }

  private LogicalPlan replaced(LogicalPlan node) {
    String kind = node.getClass().getSimpleName();
    LogicalPlan found = relation(node, kind);
    if (found != null) return found;
    if (kind.equals("WithCTE") && changed((LogicalPlan) Python.part(node, "plan")) != null) {
      throw reject("WITH before DELETE, UPDATE or MERGE. Write its queries behind USING");
    }
    LogicalPlan viewed = throughView(node, kind);
    if (viewed != null) node = viewed;
    List target = changed(node);
    if (target != null) return Statement.of("plan", node, target, false, result(kind));
    return created(node, kind);
  }

  // --- relations ---

  private LogicalPlan relation(LogicalPlan node, String kind) {
    if (kind.equals("UnresolvedRelation")) {
      LogicalPlan rows = ofFormat((UnresolvedRelation) node, null);
      return rows == null ? withCatalog(node, (UnresolvedRelation) node) : rows;
    }
    if (kind.equals("RelationTimeTravel")) {
      RelationTimeTravel travel = (RelationTimeTravel) node;
      LogicalPlan rows = travel.relation() instanceof UnresolvedRelation
        ? ofFormat((UnresolvedRelation) travel.relation(), travel) : null;
      if (rows != null) return rows;
      LogicalPlan found = travel.relation() instanceof UnresolvedRelation
        ? withCatalog(travel.relation(), (UnresolvedRelation) travel.relation()) : null;
      return found == null ? null : travel.copy(found, travel.timestamp(), travel.version());
    }
    if (node instanceof LogicalRelation && ((LogicalRelation) node).relation() instanceof Rows) {
      Rows rows = (Rows) ((LogicalRelation) node).relation();
      return Python.under(rows.rows, node.output(), "the table");
    }
    if (kind.equals("DataSourceV2Relation") && Python.part(node, "table") instanceof NamedTable) {
      NamedTable table = (NamedTable) Python.part(node, "table");
      return Python.under(table.rows((Map) Python.part(node, "options")), node.output(), table.name());
    }
    if (kind.equals("StreamingRelationV2") && Python.part(node, "table") instanceof NamedTable) {
      NamedTable table = (NamedTable) Python.part(node, "table");
      HashMap options = new HashMap((Map) Python.part(node, "extraOptions"));
      options.put("path", table.place);
      return Python.under(Python.call(new Object[]{"stream", session, options}), node.output(), table.name());
    }
    if (kind.equals("StreamingRelation")) {
      org.apache.spark.sql.execution.datasources.DataSource source =
        (org.apache.spark.sql.execution.datasources.DataSource) Python.part(node, "dataSource");
      if (!isDelta(source.className())) return null;
      Map options = CollectionConverters.asJava(source.options());
      return Python.under(Python.call(new Object[]{"stream", session, options}), node.output(), "the table");
    }
    return null;
  }
  // the rows of a name such as lance.`path`, null for other names
  private LogicalPlan ofFormat(UnresolvedRelation relation, RelationTimeTravel travel) {
    List names = CollectionConverters.asJava(relation.multipartIdentifier());
    if (relation.isStreaming() || !FormatSource.isPath(names)) return null;
    String format = ((String) names.get(0)).toLowerCase(Locale.ROOT);
    HashMap options = new HashMap(relation.options());
    options.put("path", names.get(1));
    // Python rejects a time, which is an expression, and names the option that takes one
    if (travel != null) options.put(travel.version().isDefined() ? "version" : "timestampAsOf", travel.version().isDefined() ? travel.version().get() : "");
    LogicalPlan rows = ((org.apache.spark.sql.classic.Dataset) Python.call(
      new Object[]{"format", format, session, options})).queryExecution().analyzed();
    return new SubqueryAlias(new org.apache.spark.sql.catalyst.AliasIdentifier(
      (String) names.get(1), Python.seq(Collections.singletonList(names.get(0)))), rows);
  }
  // delta.`path` is found in the session's own catalog, whichever is the current one
  private LogicalPlan withCatalog(LogicalPlan node, UnresolvedRelation relation) {
    List names = CollectionConverters.asJava(relation.multipartIdentifier());
    if (names.size() != 2 || !Catalog.isPath((String) names.get(0), (String) names.get(1))) return null;
    ArrayList all = new ArrayList(names);
    all.add(0, "spark_catalog");
    LogicalPlan found = relation.copy(Python.seq(all), relation.options(), relation.isStreaming());
    found.copyTagsFrom(node);
    return found;
  }

  // --- statements ---

  private static boolean isDelta(Object provider) { return "delta".equalsIgnoreCase((String) provider); }
  private RuntimeException reject(String what) {
    return (RuntimeException) Python.call(new Object[]{"reject", what});
  }

  // a node that changes the rows of a view, about the table that the view shows whole; null for other nodes
  private LogicalPlan throughView(LogicalPlan node, String kind) {
    boolean merges = kind.equals("MergeIntoTable"), inserts = kind.equals("InsertIntoStatement");
    if (!merges && !inserts && !kind.equals("DeleteFromTable") && !kind.equals("UpdateTable")) return null;
    String part = merges ? "targetTable" : "table", alias = null;
    Object target = Python.part(node, part);
    while (target instanceof SubqueryAlias) {
      if (alias == null) alias = ((SubqueryAlias) target).alias();
      target = ((SubqueryAlias) target).child();
    }
    // Spark's own error is an internal one
    if (!inserts && target instanceof org.apache.spark.sql.catalyst.plans.logical.View) Python.call(new Object[]{"reject_view", "is not a temporary one"});
    if (!(target instanceof UnresolvedRelation)) return null;
    org.apache.spark.sql.classic.SparkSession classic = (org.apache.spark.sql.classic.SparkSession) session;
    scala.collection.immutable.Seq names = ((UnresolvedRelation) target).multipartIdentifier();
    if (!classic.sessionState().catalog().isTempView(names)) return null;
    LogicalPlan rows = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(classic, (LogicalPlan) target).queryExecution().analyzed();
    // Spark inserts into views of its own formats, and rejects views of a text
    if (inserts && (ofText(rows) || !ofOurs(rows))) return null;
    String place = shown(rows);
    if (place == null) Python.call(new Object[]{"reject_view", notShown(rows)});
    if (alias == null) alias = (String) names.last();
    LogicalPlan table = new UnresolvedRelation(Python.seq(Arrays.asList(new Object[]{"delta", place})),
      org.apache.spark.sql.util.CaseInsensitiveStringMap.empty(), false);
    if (!inserts) table = new SubqueryAlias(new org.apache.spark.sql.catalyst.AliasIdentifier(alias), table);
    LogicalPlan found = Python.with(node, part, table);
    found.copyTagsFrom(node);
    return found;
  }
  // the place of the table whose latest rows a plan shows, with columns under their own names; null for other plans
  private static String shown(LogicalPlan plan) {
    LogicalPlan child = plan;
    while (!(child instanceof LogicalRelation)) {
      if (child instanceof Project) {
        Iterator it = CollectionConverters.asJava(((Project) child).projectList()).iterator();
        while (it.hasNext()) if (!isPlain(it.next())) return null;
      } else if (!(child instanceof SubqueryAlias)
          && !(child instanceof org.apache.spark.sql.catalyst.plans.logical.View)) return null;
      child = (LogicalPlan) child.children().apply(0);
    }
    Object relation = ((LogicalRelation) child).relation();
    String found = index(relation);
    if (found == null || !found.endsWith(" (latest)")) return null;
    return found.replaceFirst("^delta_core ", "").replaceFirst(" \\(latest\\)$", "");
  }
  // what the index of a table's rows is named, null for other relations
  private static String index(Object relation) {
    if (!(relation instanceof org.apache.spark.sql.execution.datasources.HadoopFsRelation)) return null;
    Object index = ((org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation).location();
    // of another class loader
    return index.getClass().getSimpleName().equals("LatestFiles") ? index.toString() : null;
  }
  private static boolean ofText(LogicalPlan plan) {
    LogicalPlan child = plan;
    while (child instanceof SubqueryAlias) child = ((SubqueryAlias) child).child();
    return !(child instanceof org.apache.spark.sql.catalyst.plans.logical.View)
      || !((org.apache.spark.sql.catalyst.plans.logical.View) child).isTempViewStoringAnalyzedPlan();
  }
  private static boolean ofOurs(LogicalPlan plan) {
    Iterator it = CollectionConverters.asJava(plan.collectLeaves()).iterator();
    while (it.hasNext()) {
      Object leaf = it.next();
      if (leaf instanceof LogicalRelation && index(((LogicalRelation) leaf).relation()) != null) return true;
    }
    return false;
  }
  // what a view shows that is not the latest rows of one table
  private static String notShown(LogicalPlan plan) {
    boolean some = false;
    while (plan.children().size() == 1) {
      some |= plan.getClass().getSimpleName().equals("Filter");
      plan = (LogicalPlan) plan.children().apply(0);
    }
    String found = plan instanceof LogicalRelation ? index(((LogicalRelation) plan).relation()) : null;
    if (found == null) return "does not show one table alone";
    if (!found.endsWith(" (latest)")) return "shows a fixed version of a table";
    return some ? "shows some rows of a table" : "shows other columns than its table has";
  }
  private static boolean isPlain(Object column) {
    if (!(column instanceof org.apache.spark.sql.catalyst.expressions.Alias))
      return column instanceof org.apache.spark.sql.catalyst.expressions.AttributeReference;
    Object child = ((org.apache.spark.sql.catalyst.expressions.Alias) column).child();
    // a view casts columns to the types that they had when it was made
    if (child instanceof org.apache.spark.sql.catalyst.expressions.Cast) {
      org.apache.spark.sql.catalyst.expressions.Cast cast = (org.apache.spark.sql.catalyst.expressions.Cast) child;
      Object below = cast.child();
      if (((org.apache.spark.sql.catalyst.expressions.Expression) below).dataType().sameType(cast.dataType())) child = below;
    }
    return child instanceof org.apache.spark.sql.catalyst.expressions.AttributeReference
      && ((org.apache.spark.sql.catalyst.expressions.AttributeReference) child).name().equals(
        ((org.apache.spark.sql.catalyst.expressions.Alias) column).name());
  }

  // the table of ours whose rows a node changes, null for other nodes
  private List changed(LogicalPlan node) {
    String kind = node.getClass().getSimpleName();
    boolean merges = kind.equals("MergeIntoTable");
    if (!merges && !kind.equals("InsertIntoStatement") && !kind.equals("DeleteFromTable") && !kind.equals("UpdateTable")
        && !kind.equals("AppendData") && !kind.equals("OverwriteByExpression")
        && !kind.equals("OverwritePartitionsDynamic")) return null;
    Object table = Python.part(node, merges ? "targetTable" : "table");
    while (table instanceof SubqueryAlias) table = ((SubqueryAlias) table).child();
    if (table instanceof UnresolvedRelation) {
      scala.collection.immutable.Seq names = ((UnresolvedRelation) table).multipartIdentifier();
      List other = format(names);
      return other == null ? ours(names, true) : other;
    }
    boolean named = table != null && table.getClass().getSimpleName().equals("DataSourceV2Relation")
      && Python.part(table, "table") instanceof NamedTable;
    return named ? Arrays.asList(new Object[]{"delta", ((NamedTable) Python.part(table, "table")).place}) : null;
  }
  // the format, the place and the options' names of a table of another format; null for other names
  private List format(scala.collection.immutable.Seq names) {
    List parts = CollectionConverters.asJava(names);
    if (FormatSource.isPath(parts)) return new ArrayList(parts);
    org.apache.spark.sql.internal.SessionState state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    if (state.catalog().isTempView(names)) return null;
    scala.Option found = state.analyzer().CatalogAndIdentifier().unapply(names);
    Object catalog = found.isEmpty() ? null : ((scala.Tuple2) found.get())._1();
    return catalog instanceof Catalog ? ((Catalog) catalog).format((Identifier) ((scala.Tuple2) found.get())._2()) : null;
  }
  // the name in the session's catalog of a table of ours, or of one that is to be made there; null for other names
  private List ours(scala.collection.immutable.Seq names, boolean exists) {
    List parts = CollectionConverters.asJava(names);
    if (parts.size() == 2 && Catalog.isPath((String) parts.get(0), (String) parts.get(1))) return new ArrayList(parts);
    org.apache.spark.sql.internal.SessionState state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    if (exists && state.catalog().isTempView(names)) return null;
    scala.Option found = state.analyzer().CatalogAndIdentifier().unapply(names);
    if (found.isEmpty()) return null;
    Object catalog = ((scala.Tuple2) found.get())._1();
    Identifier identifier = (Identifier) ((scala.Tuple2) found.get())._2();
    if (!(catalog instanceof Catalog) || exists && !((Catalog) catalog).isDelta(identifier)) return null;
    ArrayList out = new ArrayList(Arrays.asList(identifier.namespace()));
    out.add(identifier.name());
    return out;
  }
  private String result(String kind) {
    if (kind.equals("DeleteFromTable") || kind.equals("UpdateTable")) return counts(new String[]{"affected"});
    return kind.equals("MergeIntoTable") ? counts(new String[]{"affected", "updated", "deleted", "inserted"}) : NONE;
  }
  private static String counts(String[] names) {
    org.apache.spark.sql.types.StructType type = new org.apache.spark.sql.types.StructType();
    for (int i = 0; i < names.length; i++) type = type.add("num_" + names[i] + "_rows", "bigint");
    return type.json();
  }
  private LogicalPlan created(LogicalPlan node, String kind) {
    if (kind.equals("CreateTableLikeCommand") || kind.equals("CreateTableLike")) return like(node, kind);
    if (kind.equals("ShowPartitions")) return partitions(node);
    if (node instanceof org.apache.spark.sql.execution.datasources.CreateTable) {
      return overNamed((org.apache.spark.sql.execution.datasources.CreateTable) node);
    }
    if (!kind.equals("CreateTable") && !kind.equals("CreateTableAsSelect") && !kind.equals("ReplaceTable")
        && !kind.equals("ReplaceTableAsSelect")) return null;
    Object name = Python.part(node, "name"), spec = Python.part(node, "tableSpec");
    if (!(name instanceof UnresolvedIdentifier)) return null;
    scala.Option provider = (scala.Option) Python.part(spec, "provider");
    if (!isDelta(provider.isDefined() ? provider.get() : withoutProvider(spec))) return null;
    List target = ours(((UnresolvedIdentifier) name).nameParts(), false);
    return target == null ? null : Statement.of("plan", node, target, saves(), NONE);
  }
  // saveAsTable with a name that was, or is, one of a table of another format or of a view
  private LogicalPlan overNamed(org.apache.spark.sql.execution.datasources.CreateTable node) {
    scala.Option provider = node.tableDesc().provider();
    if (!provider.isDefined() || !isDelta(provider.get())) return null;
    List target = ours(node.tableDesc().identifier().nameParts(), false);
    if (target != null && node.query().isDefined() && node.mode() == org.apache.spark.sql.SaveMode.Overwrite) {
      // Spark has dropped what had the name
      return Statement.of("plan", node, target, true, NONE);
    }
    if (((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog().tableExists(node.tableDesc().identifier())) {
      return null; // Spark's own error names both formats
    }
    throw reject("CREATE TABLE in this form");
  }
  private LogicalPlan like(LogicalPlan node, String kind) {
    boolean old = kind.equals("CreateTableLikeCommand");
    Object source = Python.part(node, old ? "sourceTable" : "source"), target = Python.part(node, old ? "targetTable" : "name");
    scala.collection.immutable.Seq from = null, to = null;
    if (old) from = ((org.apache.spark.sql.catalyst.TableIdentifier) source).nameParts();
    else if (source instanceof UnresolvedTableOrView) from = ((UnresolvedTableOrView) source).multipartIdentifier();
    if (old) to = ((org.apache.spark.sql.catalyst.TableIdentifier) target).nameParts();
    else if (target instanceof UnresolvedIdentifier) to = ((UnresolvedIdentifier) target).nameParts();
    if (from == null || to == null) return null;
    scala.Option provider = (scala.Option) Python.part(node, "provider");
    List copied = ours(from, true), name = ours(to, false);
    if (name == null && copied != null) throw reject("CREATE TABLE ... LIKE a table of the format delta, in another catalog");
    if (name == null || copied == null && !(provider.isDefined() && isDelta(provider.get()))) return null;
    ArrayList both = new ArrayList(name);
    both.add(null);
    both.addAll(copied == null ? CollectionConverters.asJava(from) : copied);
    return Statement.of("plan", node, both, copied != null, NONE);
  }
  private LogicalPlan partitions(LogicalPlan node) {
    Object table = Python.part(node, "table"), spec = null;
    scala.Option pattern = (scala.Option) Python.part(node, "pattern");
    if (pattern.isDefined()) spec = pattern.get();
    if (!(table instanceof UnresolvedTable)) return null;
    List name = ours(((UnresolvedTable) table).multipartIdentifier(), true);
    if (name == null) return null;
    Object values = spec == null ? new HashMap() : CollectionConverters.asJava((scala.collection.Map) Python.part(spec, "spec"));
    Object rows = Python.call(new Object[]{"partitions", session, name, values});
    return ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
  }
  private Object withoutProvider(Object spec) {
    RuntimeConfig conf = session.conf();
    boolean hive = ((scala.Option) Python.part(spec, "serde")).isDefined()
      || conf.get("spark.sql.legacy.createHiveTableByDefault", "false").equals("true");
    return hive ? "hive" : conf.get("spark.sql.sources.default", "parquet");
  }
  // whether DataFrameWriter.saveAsTable is at work: it keeps the definition of a table that it overwrites
  private static boolean saves() {
    StackTraceElement[] frames = new Throwable().getStackTrace();
    for (int i = 0; i < frames.length; i++) {
      if (frames[i].getClassName().endsWith(".DataFrameWriter") && frames[i].getMethodName().equals("saveAsTable")) return true;
    }
    return false;
  }
}
