public class LatestStep extends scala.runtime.AbstractPartialFunction {
  private final Versions versions;
  private final String request;
  LatestStep(Versions versions, String request) { this.versions = versions; this.request = request; }
  public boolean isDefinedAt(Object plan) { return IsLatest.files(plan) != null; }
  public Object applyOrElse(Object plan, scala.Function1 otherwise) {
    LatestFiles files = IsLatest.files(plan);
    if (files == null) return otherwise.apply(plan);
    LogicalRelation node = (LogicalRelation) plan;
    List wanted = CollectionConverters.asJava(node.output());
    boolean metadata = false;
    for (int i = 0; i < wanted.size(); i++) {
      Attribute column = (Attribute) wanted.get(i);
      metadata = metadata || MetadataAttribute.isValid(column.metadata()) && column.name().equals("_metadata");
    }
    LogicalPlan rows = versions.rows(files, request, metadata);
    HashMap found = columns(rows);
    for (int i = 0; i < wanted.size(); i++) {
      if (column(found, (Attribute) wanted.get(i)) != null) continue;
      rows = withMetadata(rows, (Attribute) wanted.get(i));
      if (rows == null) throw changed(files, versions.rows(files, request, false));
      found = columns(rows);
    }
    ArrayList out = new ArrayList();
    for (int i = 0; i < wanted.size(); i++) {
      Attribute as = (Attribute) wanted.get(i), is = column(found, as);
      if (!as.dataType().sameType(is.dataType())) throw changed(files, versions.rows(files, request, false));
      out.add(new Alias(is, as.name(), as.exprId(), as.qualifier(), scala.Option.apply(as.metadata()),
        TableFiles.seq(new ArrayList())));
    }
    return new org.apache.spark.sql.catalyst.plans.logical.Project(TableFiles.seq(out), rows);
  }
  // by their names, and by these in lower case
  private static HashMap columns(LogicalPlan plan) {
    HashMap out = new HashMap();
    for (Object column : CollectionConverters.asJava(plan.output())) {
      out.put(((Attribute) column).name(), column);
      out.putIfAbsent(((Attribute) column).name().toLowerCase(Locale.ROOT), column);
    }
    return out;
  }
  private static Attribute column(HashMap columns, Attribute wanted) {
    Object found = columns.get(wanted.name());
    return (Attribute) (found == null ? columns.get(wanted.name().toLowerCase(Locale.ROOT)) : found);
  }
  // with the struct _metadata of Spark's files, null for another column
  private static LogicalPlan withMetadata(LogicalPlan rows, Attribute column) {
    if (!MetadataAttribute.isValid(column.metadata())) return null;
    Column[] names = new Column[rows.output().size() + 1];
    for (int i = 0; i < names.length - 1; i++) names[i] = ExpressionUtils.column((Expression) rows.output().apply(i));
    names[names.length - 1] = functions.col("`" + column.name() + "`");
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(org.apache.spark.sql.classic.SparkSession.active(), rows)
      .select(names).queryExecution().analyzed();
  }
  private static RuntimeException changed(LatestFiles files, LogicalPlan rows) {
    return (RuntimeException) files.python.apply("changed " + rows.schema().json());
  }
}
