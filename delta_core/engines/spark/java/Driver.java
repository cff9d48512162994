/**
 * The functions that Python calls. Each call from there takes a fifth of a millisecond, and a read would need two hundred of the small
 * ones: so a relation, a selection or a test of vectors is made in one.
 */
public class Driver {
  private static final org.apache.spark.sql.catalyst.trees.TreeNodeTag READ =
    new org.apache.spark.sql.catalyst.trees.TreeNodeTag("delta_core_read");
  private static StructType struct(String json) { return (StructType) DataType$.MODULE$.fromJson(json); }
  // the rows of files, as Spark's own Parquet reader returns them; stored: the columns under the names that files have for
  // the fields within them, empty if these are the same; splitBytes: 0 for what the session specifies
  public Object relation(org.apache.spark.sql.classic.SparkSession session, String root, String columns, String stored,
                         String constants, int vectorColumns, boolean byFieldId, String identity, long tableWidth,
                         java.util.function.Function python, long splitBytes) {
    PlanFiles.install(session);
    StructType schema = struct(constants), shown = struct(columns);
    TableFiles files = new TableFiles(new Path(root), schema, vectorColumns, byFieldId, identity, tableWidth, python);
    // a file that is missing or broken is never passed over, whatever the session specifies
    HashMap options = new HashMap();
    options.put("ignoreMissingFiles", "false");
    options.put("ignoreCorruptFiles", "false");
    RenamedParquet source = new RenamedParquet(shown, stored.isEmpty() ? shown : struct(stored));
    HadoopFsRelation relation = new HadoopFsRelation(files, schema, shown, scala.Option.apply(null),
      stored.isEmpty() && !source.hasFloats() ? new org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
        : source,
      org.apache.spark.api.python.PythonUtils.toScalaMap(options), splitBytes > 0L ? split(session, splitBytes) : session);
    return session.baseRelationToDataFrame(relation);
  }
  // the rows of the latest version of each query, or of a fixed one; Python opens it; metadata: fields of _metadata
  public Object latest(org.apache.spark.sql.classic.SparkSession session, String root, String columns, String metadata,
                       String table, String key, boolean fixed, java.util.function.Function python) {
    LatestRule.install(session);
    StructType none = new StructType(), shown = struct(columns);
    HadoopFsRelation relation = new HadoopFsRelation(new LatestFiles(new Path(root), table, key, fixed, python), none, shown,
      scala.Option.apply(null), new DescribedParquet(struct(metadata)),
      org.apache.spark.api.python.PythonUtils.toScalaMap(new HashMap()), session);
    return session.baseRelationToDataFrame(relation);
  }
  // rows whose versions are chosen now, with what is cached of them; null if no version is left to choose
  public Object fixed(org.apache.spark.sql.classic.Dataset rows, String request) {
    if (!LatestRule.isInstalled()) return null;
    LogicalPlan plan = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(
      rows.sparkSession(), rows.queryExecution().analyzed()).queryExecution().withCachedData();
    LogicalPlan found = (LogicalPlan) plan.transformWithSubqueries(new LatestStep(new Versions(), request));
    return found == plan ? null : org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(rows.sparkSession(), found);
  }
  // of a plan that is not analyzed: the places of the columns that have the word DEFAULT as a value
  public List defaultPlaces(org.apache.spark.sql.SparkSession session, LogicalPlan plan) { return Defaults.places(session, plan); }
  // such a plan with the defaults of columns for the word
  public LogicalPlan defaults(org.apache.spark.sql.SparkSession session, LogicalPlan plan, String[] texts) throws Exception {
    return Defaults.filled(session, plan, Arrays.asList(texts));
  }
  // remembers a text in all nodes of a plan: rules that replace one keep it in others
  public void mark(org.apache.spark.sql.classic.Dataset rows, String text) { mark(rows.logicalPlan(), text); }
  private static void mark(LogicalPlan plan, String text) {
    plan.setTagValue(READ, text);
    for (Iterator i = CollectionConverters.asJava(plan.children()).iterator(); i.hasNext(); ) mark((LogicalPlan) i.next(), text);
  }
  // the texts of `mark` in a plan and its subqueries, a line each
  public String marks(org.apache.spark.sql.classic.Dataset rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    LinkedHashSet found = new LinkedHashSet();
    marks(plan, found);
    for (Iterator i = CollectionConverters.asJava(plan.subqueriesAll()).iterator(); i.hasNext(); ) marks((LogicalPlan) i.next(), found);
    return String.join("\n", found);
  }
  private static void marks(LogicalPlan plan, Set found) {
    scala.Option text = plan.getTagValue(READ);
    if (text.isDefined()) found.add(text.get());
    for (Iterator i = CollectionConverters.asJava(plan.children()).iterator(); i.hasNext(); ) marks((LogicalPlan) i.next(), found);
  }
  // the session that a relation takes its settings from: the bytes of files for each task
  private static org.apache.spark.sql.classic.SparkSession split(org.apache.spark.sql.classic.SparkSession session, long bytes) {
    org.apache.spark.sql.classic.SparkSession own = session.cloneSession();
    own.conf().set("spark.sql.files.maxPartitionBytes", bytes);
    own.conf().set("spark.sql.files.minPartitionNum", 1L);
    return own;
  }
  // the rows of a version of a table of another format, which Python's workers read
  public Object formatRows(org.apache.spark.sql.classic.SparkSession session, String schema, String name, long bytes,
                           java.util.function.Function python) {
    return session.baseRelationToDataFrame(new FormatRows(session, struct(schema), name, bytes, python));
  }
  // a streaming DataFrame: Spark finds our class by the loader of the thread, and keeps it in the plan
  public Object stream(org.apache.spark.sql.classic.SparkSession session, String schema, java.util.function.Function python) {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(Driver.class.getClassLoader());
    try {
      String table = StreamProvider.add(struct(schema), python);
      return session.readStream().format(StreamProvider.class.getName()).option("table", table).load();
    } finally { thread.setContextClassLoader(before); }
  }
  // columns under other names: of each, its name and the new one, escaped as in a URL
  public Object select(org.apache.spark.sql.Dataset rows, String names) throws java.io.IOException {
    String[] parts = names.split("&", -1);
    Column[] out = new Column[parts.length / 2];
    for (int i = 0; i < out.length; i++) {
      String name = java.net.URLDecoder.decode(parts[2 * i], "UTF-8");
      String wanted = java.net.URLDecoder.decode(parts[2 * i + 1], "UTF-8");
      Column column = functions.col("`" + name.replace("`", "``") + "`");
      out[i] = name.equals(wanted) ? column : column.as(wanted);
    }
    return rows.select(out);
  }
  public Object analyzed(org.apache.spark.sql.Dataset rows, org.apache.spark.sql.Dataset selected, String type) {
    return Analyzed.of(rows, selected, type);
  }
  // name: of the table's column that it is cast for, empty for other casts
  public Column strict(org.apache.spark.sql.classic.SparkSession session, Column column, String name) {
    Expression found = (Expression) Call.expression(session, column).transformUp(new Strict());
    boolean stores = !name.isEmpty() && found instanceof Cast && ((Cast) found).dataType() instanceof NumericType;
    return ExpressionUtils.column(stores ? new CheckOverflowInTableInsert(found, name) : found);
  }
  // the session's settings of Delta and of SQL that are set: name and text in turn, escaped as in a URL
  public String settings(org.apache.spark.sql.classic.SparkSession session) throws java.io.IOException {
    StringBuilder out = new StringBuilder();
    Map all = CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
    for (Iterator i = all.entrySet().iterator(); i.hasNext(); ) {
      Map.Entry entry = (Map.Entry) i.next();
      String name = (String) entry.getKey();
      if (!name.startsWith("spark.databricks.") && !name.startsWith("spark.delta.") && !name.startsWith("spark.sql.")) continue;
      if (out.length() > 0) out.append('&');
      out.append(java.net.URLEncoder.encode(name, "UTF-8")).append('=');
      out.append(java.net.URLEncoder.encode((String) entry.getValue(), "UTF-8"));
    }
    return out.toString();
  }
  // names have no line's end: they are encoded
  public String inputFiles(org.apache.spark.sql.Dataset rows) { return String.join("\n", (CharSequence[]) rows.inputFiles()); }
  public Replay replay(InternalRow[] rows, String schema, String kinds) { return new Replay(rows, struct(schema), kinds); }
  // Whether a row's bit is set, least significant bit first; false beyond the end. The class reads memory without a look
  // at its bounds: the comparison before it is what keeps it within them.
  public Column bitTest(Column bitmap, Column row) {
    Column offset = functions.lit(new Long((long) org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET));
    Column test = called(org.apache.spark.unsafe.bitset.BitSetMethods.class, DataTypes.BooleanType, "isSet",
      new Column[]{bitmap, offset, row.cast("int")});
    Column inside = row.geq(new Integer(0)).and(row.lt(functions.octet_length(bitmap).cast("long").multiply(new Integer(8))));
    return functions.when(inside, test).otherwise(Boolean.FALSE);
  }
  // whether a row is in a 32-bit portable roaring bitmap; false from row 2^31 on
  public Column roaringTest(Column bitmap, Column row) {
    Class kind = org.roaringbitmap.buffer.ImmutableRoaringBitmap.class;
    Column wrapped = called(java.nio.ByteBuffer.class, new ObjectType(java.nio.ByteBuffer.class), "wrap", new Column[]{bitmap});
    Expression made = NewInstance$.MODULE$.apply(kind, expressions(new Column[]{wrapped}), none(), false, new ObjectType(kind),
      scala.Option.apply(null));
    Expression test = new Invoke(made, "contains", DataTypes.BooleanType, expressions(new Column[]{row.cast("int")}), none(),
      false, false, true);
    Column inside = row.geq(new Integer(0)).and(row.lt(new Long(2147483648L)));
    return functions.when(inside, ExpressionUtils.column(test)).otherwise(Boolean.FALSE);
  }
  private static Column called(Class kind, DataType type, String method, Column[] arguments) {
    return ExpressionUtils.column(new StaticInvoke(kind, type, method, expressions(arguments), none(), true, false, true,
      scala.Option.apply(null)));
  }
  private static scala.collection.immutable.Seq expressions(Column[] columns) {
    ArrayList out = new ArrayList();
    for (int i = 0; i < columns.length; i++) out.add(ExpressionUtils.expression(columns[i]));
    return TableFiles.seq(out);
  }
  private static scala.collection.immutable.Seq none() { return TableFiles.seq(new ArrayList()); }
}
