/**
 * The files of one snapshot: those with the same constants are a partition, whose values these are. Python is called for
 * the files that a filter needs when it is planned, and for no others: an index that was not called holds nothing.
 */
public class TableFiles implements FileIndex {
  private static final int REMEMBERED = 4;
  private final Path root;
  private final StructType schema;
  private final int vectorColumns;
  private final boolean byFieldId;
  private final String identity;
  private final long tableWidth;
  private final java.util.function.Function python;
  private final LinkedHashMap answers;
  private final Found found;
  private final long width;
  // All files of a snapshot, not listed yet. Two of one identity are the same files with the same constants; an empty
  // identity equals no other. The table's width is the size of a row by Spark's estimate: the files hold such rows.
  public TableFiles(Path root, StructType schema, int vectorColumns, boolean byFieldId, String identity, long tableWidth,
                    java.util.function.Function python) {
    this.root = root; this.schema = schema; this.vectorColumns = vectorColumns; this.byFieldId = byFieldId;
    this.identity = identity; this.tableWidth = tableWidth; this.python = python;
    answers = new LinkedHashMap(8, 0.75f, true); found = null; width = -1L;
  }
  // the files that are found, or all while there is nothing found, for a relation whose rows have this width
  private TableFiles(TableFiles all, Found found, long width) {
    root = all.root; schema = all.schema; vectorColumns = all.vectorColumns; byFieldId = all.byFieldId;
    identity = all.identity; tableWidth = all.tableWidth; python = all.python; answers = all.answers;
    this.found = found; this.width = width;
  }
  public TableFiles planned(String filters, long width) { return new TableFiles(this, filters == null ? null : find(filters), width); }
  public boolean isPlanned() { return width >= 0L; }
  // the files that remain after a filter, null if it contains nothing of files; the same filter finds the same object
  private Found find(String filters) {
    synchronized (answers) {
      if (answers.containsKey(filters)) return (Found) answers.get(filters);
      Object answer = python.apply("files " + filters);
      Found left = answer == null || answer instanceof Found ? (Found) answer
        : new Listing((String) answer, schema, schema.length() - vectorColumns);
      answers.put(filters, left);
      if (answers.size() > REMEMBERED) answers.remove(answers.keySet().iterator().next());
      return left;
    }
  }
  private Found loaded() { return found != null ? found : find("[]"); }
  public scala.collection.immutable.Seq rootPaths() { return seq(Collections.singletonList(root)); }
  public StructType partitionSchema() { return schema; }
  public void refresh() {}
  // Spark scales a relation's size by the width of the columns that are used. The width that it counts for hidden columns and does
  // not count for columns that this read leaves out is made good here.
  public long sizeInBytes() {
    long bytes = found != null ? found.bytes() : Long.parseLong((String) python.apply("size"));
    return width < 0L ? bytes : (long) Math.ceil((double) bytes * width / tableWidth);
  }
  public String[] inputFiles() {
    Found all = loaded();
    String[] out = new String[all.count];
    for (int f = 0; f < out.length; f++) out[f] = new Path(all.place(f)).toUri().toString();
    return out;
  }
  public scala.collection.immutable.Seq listFiles(scala.collection.immutable.Seq partitionFilters,
                                                  scala.collection.immutable.Seq dataFilters) {
    if (byFieldId && !org.apache.spark.sql.internal.SQLConf$.MODULE$.get().parquetFieldIdReadEnabled()) {
      throw new IllegalStateException("This table's columns are found by field id: "
        + "set spark.sql.parquet.fieldId.read.enabled to true in the session, as delta_core.spark.read did.");
    }
    Found from = found;
    if (from == null && !(partitionFilters.isEmpty() && dataFilters.isEmpty())) {
      from = find(FilterText.all((scala.collection.Seq) partitionFilters.$plus$plus(dataFilters)));
    }
    return list(from == null ? loaded() : from, partitionFilters);
  }
  private scala.collection.immutable.Seq list(Found from, scala.collection.immutable.Seq filters) {
    BasePredicate[] tests = new BasePredicate[filters.size()];
    for (int i = 0; i < tests.length; i++) {
      Expression test = (Expression) filters.apply(i);
      tests[i] = Predicate$.MODULE$.createInterpreted((Expression) test.transform(new Bind(schema)));
      tests[i].initialize(0);
    }
    int[] left = new int[from.count];
    int n = 0;
    for (int f = 0; f < left.length; f++) {
      if (from.lengths[f] > 0L && (tests.length == 0 || passes(tests, row(from, f, null)))) left[n++] = f;
    }
    left = Arrays.copyOf(left, n);
    return seq(directories(from, left, load(from, left)));
  }
  // files with the same constants are one partition: of a file, Spark holds no more than it makes of it itself
  private List directories(Found from, int[] left, Object[][] loaded) {
    LinkedHashMap groups = new LinkedHashMap();
    ArrayList out = new ArrayList();
    for (int i = 0; i < left.length; i++) {
      if (loaded != null && loaded[i] != null) {
        out.add(new PartitionDirectory(row(from, left[i], loaded[i]), new Files(from, new int[]{left[i]}, 1)));
        continue;
      }
      List key = from.constants(left[i]);
      Group group = (Group) groups.get(key);
      if (group == null) { group = new Group(); groups.put(key, group); }
      group.add(left[i]);
    }
    Iterator it = groups.values().iterator();
    while (it.hasNext()) {
      Group group = (Group) it.next();
      out.add(new PartitionDirectory(row(from, group.files[0], null), new Files(from, group.files, group.count)));
    }
    return out;
  }
  private static boolean passes(BasePredicate[] tests, InternalRow row) {
    for (int i = 0; i < tests.length; i++) if (!tests[i].eval(row)) return false;
    return true;
  }
  private InternalRow row(Found from, int f, Object[] vector) {
    int columns = schema.length() - vectorColumns;
    Object[] values = new Object[columns + vectorColumns];
    for (int j = 0; j < columns; j++) values[j] = from.constant(f, j);
    if (vector != null) System.arraycopy(vector, 0, values, columns, vectorColumns);
    return new GenericInternalRow(values);
  }
  // vectors of the files that are read, and of no others; they may be dropped again when memory is short
  private Object[][] load(Found from, int[] left) {
    if (vectorColumns == 0) return null;
    Object[][] out = new Object[left.length][];
    synchronized (from) {
      if (from.vectors == null) from.vectors = new java.lang.ref.SoftReference[from.count];
      StringBuilder wanted = new StringBuilder();
      HashMap missing = new HashMap();
      for (int i = 0; i < out.length; i++) {
        int f = left[i];
        if (!from.hasVector[f]) continue;
        out[i] = from.vectors[f] == null ? null : (Object[]) from.vectors[f].get();
        if (out[i] == null) { missing.put(from.number(f), new int[]{i, f}); from.ask(f, wanted); }
      }
      if (!missing.isEmpty()) vectors(from, wanted, missing, out);
    }
    return out;
  }
  private void vectors(Found from, StringBuilder wanted, HashMap missing, Object[][] out) {
    java.io.File file = new java.io.File((String) python.apply("vectors" + wanted));
    try {
      java.io.InputStream bytesIn = new java.io.BufferedInputStream(new java.io.FileInputStream(file), 1 << 20);
      java.io.DataInputStream in = new java.io.DataInputStream(bytesIn);
      try {
        for (int number = in.readInt(); number >= 0; number = in.readInt()) {
          Object[] vector = new Object[vectorColumns];
          int column = in.readInt();
          byte[] bytes = new byte[in.readInt()];
          in.readFully(bytes);
          vector[column] = bytes;
          int[] place = (int[]) missing.remove(new Integer(number));
          out[place[0]] = vector;
          from.vectors[place[1]] = new java.lang.ref.SoftReference(vector);
        }
      } finally { in.close(); }
    } catch (java.io.IOException e) { throw new IllegalStateException("The deleted rows can't be handed to Spark", e); }
    finally { file.delete(); }
    if (!missing.isEmpty()) throw new IllegalStateException("The deleted rows of " + missing.size() + " files are missing");
  }
  public boolean equals(Object o) {
    if (o == this) return true;
    if (!(o instanceof TableFiles)) return false;
    TableFiles other = (TableFiles) o;
    boolean same = other.answers == answers || (!identity.isEmpty() && identity.equals(other.identity));
    // Spark drops what a rule made of a plan if it equals the plan
    return same && isPlanned() == other.isPlanned() && (found == null ? other.found == null : found.sameFiles(other.found));
  }
  public int hashCode() {
    int hash = identity.isEmpty() ? System.identityHashCode(answers) : identity.hashCode();
    return found == null ? hash : 31 * hash + Long.hashCode(found.bytes());
  }
  public String toString() { return "delta_core " + root; }
  static scala.collection.immutable.Seq seq(List list) { return CollectionConverters.asScala(list).toSeq(); }
}
