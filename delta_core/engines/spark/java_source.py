"""Java that runs in the driver alone, compiled there at run time: file index, planner rule, Parquet source, their maker.

All touch files, never rows, and are never shipped: what executors run are Spark's own classes.
"""

from __future__ import annotations

__all__ = ["PACKAGE", "SOURCE"]

PACKAGE = "delta_core_driver"

_IMPORTS = """
package delta_core_driver;
import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.objects.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;
"""

#: A filter as JSON that keeps values exact; what Python could not judge is null.
_FILTER_TEXT = """
public class FilterText {
  public static String all(scala.collection.Seq filters) {
    StringBuilder out = new StringBuilder("[");
    scala.collection.Iterator it = filters.iterator();
    while (it.hasNext()) { if (out.length() > 1) out.append(","); write(it.next(), out); }
    return out.append("]").toString();
  }
  public static void write(Object node, StringBuilder out) {
    Expression e = (Expression) node;
    if (e instanceof And) two("and", ((And) e).left(), ((And) e).right(), out);
    else if (e instanceof Or) two("or", ((Or) e).left(), ((Or) e).right(), out);
    else if (e instanceof Not) one("not", ((Not) e).child(), out);
    else if (e instanceof IsNull) one("isnull", ((IsNull) e).child(), out);
    else if (e instanceof IsNotNull) one("isnotnull", ((IsNotNull) e).child(), out);
    else if (e instanceof StartsWith) two("startswith", ((StartsWith) e).left(), ((StartsWith) e).right(), out);
    else if (e instanceof BinaryComparison) {
      BinaryComparison c = (BinaryComparison) e;
      two(c.symbol(), c.left(), c.right(), out);
    }
    else if (e instanceof In) in((In) e, out);
    else if (e instanceof InSet) inSet((InSet) e, out);
    else if (e instanceof Literal) literal(((Literal) e).value(), e.dataType(), out);
    else column(e, out);
  }
  private static void one(String name, Object a, StringBuilder out) {
    out.append("[\\"").append(name).append("\\","); write(a, out); out.append("]");
  }
  private static void two(String name, Object a, Object b, StringBuilder out) {
    out.append("[\\"").append(name).append("\\","); write(a, out); out.append(","); write(b, out); out.append("]");
  }
  private static void in(In e, StringBuilder out) {
    out.append("[\\"in\\","); write(e.value(), out);
    scala.collection.Iterator it = e.list().iterator();
    while (it.hasNext()) { out.append(","); write(it.next(), out); }
    out.append("]");
  }
  private static void inSet(InSet e, StringBuilder out) {
    out.append("[\\"in\\","); write(e.child(), out);
    scala.collection.Iterator it = e.hset().iterator();
    while (it.hasNext()) { out.append(","); literal(it.next(), ((Expression) (Object) e.child()).dataType(), out); }
    out.append("]");
  }
  private static boolean plain(DataType t) {
    return t instanceof StringType ? t.equals(DataTypes.StringType) : t instanceof AtomicType;
  }
  private static void column(Expression e, StringBuilder out) {
    ArrayList names = new ArrayList();
    Expression at = e;
    while (at instanceof GetStructField) {
      GetStructField f = (GetStructField) at;
      names.add(0, ((StructType) ((Expression) (Object) f.child()).dataType()).fieldNames()[f.ordinal()]);
      at = (Expression) (Object) f.child();
    }
    if (!(at instanceof AttributeReference) || !(plain(e.dataType()) || e.dataType() instanceof StructType)) {
      out.append("null"); return;
    }
    names.add(0, ((AttributeReference) at).name());
    out.append("[\\"column\\"");
    for (int i = 0; i < names.size(); i++) { out.append(","); quote((String) names.get(i), out); }
    out.append("]");
  }
  private static void literal(Object v, DataType t, StringBuilder out) {
    if (!plain(t) && !(t instanceof NullType)) { out.append("null"); return; }
    out.append("[\\"literal\\",").append(t.json()).append(",");
    if (v == null) out.append("null");
    else if (v instanceof byte[]) {
      StringBuilder hex = new StringBuilder();
      byte[] bytes = (byte[]) v;
      for (int i = 0; i < bytes.length; i++) {
        hex.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
      }
      quote(hex.toString(), out);
    }
    else if (v instanceof Float) quote(Double.toString(((Float) v).doubleValue()), out);
    else quote(v.toString(), out);
    out.append("]");
  }
  static void quote(String s, StringBuilder out) {
    out.append('"');
    for (int i = 0; i < s.length(); i++) {
      char c = s.charAt(i);
      if (c == '"' || c == '\\\\') out.append('\\\\').append(c);
      else if (c < 32 || c > 126) {
        String h = Integer.toHexString(c);
        out.append("\\\\u0000".substring(0, 6 - h.length())).append(h);
      }
      else out.append(c);
    }
    out.append('"');
  }
}
"""

#: The files of one snapshot: those with the same constants are a partition, whose values these are. Python is asked for
#: the files that a filter needs when it is planned, and for no others: an index that was not asked holds nothing.
_TABLE_FILES = """
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
  // what a filter leaves, null where it tells nothing of files; the same filter finds the same object
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
  // Spark scales a relation's size by the width of the columns that are used. What it counts for hidden columns and does
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
    // Spark drops what a rule made of a plan where it equals the plan
    return same && isPlanned() == other.isPlanned() && (found == null ? other.found == null : found.sameFiles(other.found));
  }
  public int hashCode() {
    int hash = identity.isEmpty() ? System.identityHashCode(answers) : identity.hashCode();
    return found == null ? hash : 31 * hash + Long.hashCode(found.bytes());
  }
  public String toString() { return "delta_core " + root; }
  static scala.collection.immutable.Seq seq(List list) { return CollectionConverters.asScala(list).toSeq(); }
}
"""

#: Files as they are handed over, each with the number by which Python knows it.
_FOUND = """
public abstract class Found {
  int count;
  long[] lengths;
  boolean[] hasVector;
  int[] numbers;
  java.lang.ref.SoftReference[] vectors;
  private long bytes = -1L;
  // where a file lies, as Hadoop spells it
  abstract String place(int f);
  // one of its constants
  abstract Object constant(int f, int column);
  // all of them, to be compared
  abstract List constants(int f);
  Integer number(int f) { return new Integer(numbers[f]); }
  // adds what Python is to be told of a file whose vector is wanted
  void ask(int f, StringBuilder wanted) { wanted.append(" ").append(numbers[f]); }
  synchronized long bytes() {
    if (bytes < 0L) {
      bytes = 0L;
      for (int f = 0; f < count; f++) bytes += lengths[f];
    }
    return bytes;
  }
  // whether these are the same files of one version, where a file's place tells all else of it
  boolean sameFiles(Found other) {
    if (other == this) return true;
    if (other == null || other.count != count || other.bytes() != bytes()) return false;
    for (int f = 0; f < count; f++) if (!place(f).equals(other.place(f))) return false;
    return true;
  }
}
"""

#: Some files of a listing as Spark takes them: each is made when it is looked at, and not kept.
_FILES = """
public class Files extends scala.collection.immutable.AbstractSeq {
  private final Found from;
  private final int[] numbers;
  private final int count;
  public Files(Found from, int[] numbers, int count) { this.from = from; this.numbers = numbers; this.count = count; }
  public int length() { return count; }
  public int knownSize() { return count; }
  public Object apply(int i) {
    if (i < 0 || i >= count) throw new IndexOutOfBoundsException(String.valueOf(i));
    return new FileStatusWithMetadata(new Status(from, numbers[i]),
      (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
  }
  public Object apply(Object i) { return apply(((Integer) i).intValue()); }
  public boolean isDefinedAt(int i) { return i >= 0 && i < count; }
  public boolean isDefinedAt(Object i) { return isDefinedAt(((Integer) i).intValue()); }
  public scala.collection.Iterator iterator() { return new FilesIterator(this); }
}
"""

_FILES_ITERATOR = """
public class FilesIterator extends scala.collection.AbstractIterator {
  private final Files files;
  private int at = 0;
  public FilesIterator(Files files) { this.files = files; }
  public boolean hasNext() { return at < files.length(); }
  public Object next() { return files.apply(at++); }
}
"""

_STATUS = """
public class Status extends FileStatus {
  private final transient Found from;
  private final transient int file;
  public Status(Found from, int file) {
    super(from.lengths[file], false, 1, 134217728L, 0L, null);
    this.from = from; this.file = file;
  }
  public Path getPath() { return new Path(from.place(file)); }
}
"""

_GROUP = """
public class Group {
  int[] files = new int[4];
  int count;
  void add(int f) {
    if (count == files.length) files = Arrays.copyOf(files, 2 * count);
    files[count++] = f;
  }
}
"""

#: Files that Python chose, from the file in which `delta_core.engines.spark.handover` wrote them.
_LISTING = """
public class Listing extends Found {
  private java.nio.ByteBuffer in;
  // of each file its block; of each block its first file, its places behind what they begin with in common, and where
  // each ends; its constants by column
  private char[] blocks;
  private int[] firsts;
  private String[] heads;
  private byte[][] tails;
  private int[][] ends;
  private Object[][][] values;
  public Listing(String name, StructType schema, int columns) {
    java.io.File file = new java.io.File(name);
    try {
      java.io.DataInputStream from = new java.io.DataInputStream(new java.io.FileInputStream(file));
      try {
        count = from.readInt();
        int n = from.readInt();
        firsts = new int[n]; heads = new String[n]; tails = new byte[n][]; ends = new int[n][];
        values = new Object[n][columns][];
        blocks = new char[count];
        lengths = new long[count]; hasVector = new boolean[count]; numbers = new int[count];
        for (int b = 0, first = 0; b < n; b++) {
          byte[] block = new byte[from.readInt()];
          from.readFully(block);
          in = java.nio.ByteBuffer.wrap(block).order(java.nio.ByteOrder.LITTLE_ENDIAN);
          firsts[b] = first;
          first += read(b, in.getInt(), schema);
          Arrays.fill(blocks, firsts[b], first, (char) b);
        }
      } finally { from.close(); }
    } catch (java.io.IOException e) { throw new IllegalStateException("The files can't be handed to Spark", e); }
    finally { file.delete(); in = null; }
  }
  private int read(int b, int n, StructType schema) {
    int first = firsts[b];
    places(b, n);
    for (int i = 0; i < n; i++) lengths[first + i] = in.getLong();
    for (int i = 0; i < n; i++) hasVector[first + i] = in.get() != 0;
    for (int i = 0; i < n; i++) numbers[first + i] = in.getInt();
    for (int j = 0; j < values[b].length; j++) values[b][j] = column(n, schema.fields()[j].dataType());
    return n;
  }
  private void places(int b, int n) {
    // of the form of values, without nulls
    in.get();
    in.get();
    byte[] block = in.array();
    int at = in.position(), start = at + 4 * n, from = start, head = 0;
    for (int i = 0; i < n; i++) {
      int to = start + in.getInt(at + 4 * i);
      // a byte above 127 is part of a character
      int most = i == 0 ? to - from : Math.min(head, to - from);
      head = 0;
      while (head < most && block[from + head] == block[start + head] && block[from + head] > 0) head++;
      from = to;
    }
    in.position(from);
    heads[b] = text(block, start, start + head);
    ends[b] = new int[n];
    byte[] out = new byte[from - start - n * head];
    int length = 0;
    from = start;
    for (int i = 0; i < n; i++) {
      int to = start + in.getInt(at + 4 * i);
      System.arraycopy(block, from + head, out, length, to - from - head);
      length += to - from - head;
      ends[b][i] = length;
      from = to;
    }
    tails[b] = out;
  }
  String place(int f) {
    int b = blocks[f], i = f - firsts[b];
    return heads[b] + text(tails[b], i == 0 ? 0 : ends[b][i - 1], ends[b][i]);
  }
  Object constant(int f, int column) { return values[blocks[f]][column][f - firsts[blocks[f]]]; }
  List constants(int f) {
    Object[][] columns = values[blocks[f]];
    int i = f - firsts[blocks[f]];
    Object[] out = new Object[columns.length];
    for (int j = 0; j < out.length; j++) out[j] = columns[j][i];
    return Arrays.asList(out);
  }
  // form: 0: all null; 1: values; 2: distinct values, then codes
  private Object[] column(int n, DataType type) {
    int form = in.get();
    if (form == 1) return values(n, type);
    Object[] out = new Object[n];
    if (form == 0) return out;
    Object[] distinct = values(in.getInt(), type);
    for (int i = 0; i < n; i++) { int code = in.getInt(); if (code >= 0) out[i] = distinct[code]; }
    return out;
  }
  private Object[] values(int n, DataType type) {
    byte[] valid = null;
    if (in.get() != 0) { valid = new byte[n]; in.get(valid); }
    Object[] out = new Object[n];
    if (type instanceof BooleanType) for (int i = 0; i < n; i++) out[i] = new Boolean(in.get() != 0);
    else if (type instanceof ByteType) for (int i = 0; i < n; i++) out[i] = new Byte(in.get());
    else if (type instanceof ShortType) for (int i = 0; i < n; i++) out[i] = new Short(in.getShort());
    else if (type instanceof IntegerType || type instanceof DateType) for (int i = 0; i < n; i++) out[i] = new Integer(in.getInt());
    else if (type instanceof FloatType) for (int i = 0; i < n; i++) out[i] = new Float(in.getFloat());
    else if (type instanceof DoubleType) for (int i = 0; i < n; i++) out[i] = new Double(in.getDouble());
    else if (type == null || isText(type)) texts(n, type, out);
    else for (int i = 0; i < n; i++) out[i] = new Long(in.getLong());
    if (valid != null) for (int i = 0; i < n; i++) if (valid[i] == 0) out[i] = null;
    return out;
  }
  private static boolean isText(DataType type) {
    return type instanceof StringType || type instanceof BinaryType || type instanceof DecimalType;
  }
  private void texts(int n, DataType type, Object[] out) {
    int ends = in.position(), start = ends + 4 * n;
    int from = start;
    byte[] block = in.array();
    for (int i = 0; i < n; i++) {
      int to = start + in.getInt(ends + 4 * i);
      if (type == null) out[i] = text(block, from, to);
      else if (type instanceof StringType) out[i] = UTF8String.fromBytes(Arrays.copyOfRange(block, from, to));
      else if (type instanceof BinaryType) out[i] = Arrays.copyOfRange(block, from, to);
      else if (to > from) out[i] = decimal(text(block, from, to), (DecimalType) type);
      from = to;
    }
    in.position(from);
  }
  private static String text(byte[] block, int from, int to) {
    return new String(block, from, to - from, java.nio.charset.StandardCharsets.UTF_8);
  }
  private static Decimal decimal(String text, DecimalType type) {
    return Decimal$.MODULE$.apply(new java.math.BigDecimal(text), type.precision(), type.scale());
  }
}
"""

#: The rows of a job that replayed a log, as files: paths resolved, partition values typed. Both are asked of Python by
#: distinct text, and of paths only the few that the log spells as URIs or in bytes that are no text.
_REPLAY = """
public class Replay extends Found {
  private final InternalRow[] rows;
  private final StructType schema;
  private final int[] kinds;
  private final HashMap[] values;
  private final HashMap odd = new HashMap();
  private String[] descriptors;
  private String[] places;
  private Object[][] constants;
  // rows: path, size, descriptor of a vector as JSON, then the constants; kinds: v(alue), t(ext), p(lace)
  public Replay(InternalRow[] rows, StructType schema, String kinds) {
    this.rows = rows; this.schema = schema; this.kinds = new int[kinds.length()];
    for (int j = 0; j < this.kinds.length; j++) this.kinds[j] = kinds.charAt(j);
    values = new HashMap[this.kinds.length];
  }
  String place(int f) { return places[f]; }
  Object constant(int f, int column) { return constants[f][column]; }
  List constants(int f) { return Arrays.asList(constants[f]); }
  private LinkedHashSet distinct(int column) {
    LinkedHashSet out = new LinkedHashSet();
    for (int i = 0; i < rows.length; i++) if (!rows[i].isNullAt(3 + column)) out.add(rows[i].getUTF8String(3 + column));
    return out;
  }
  public String texts(int column) { return json(distinct(column)); }
  private static String json(Collection texts) {
    StringBuilder out = new StringBuilder("[");
    Iterator it = texts.iterator();
    while (it.hasNext()) { if (out.length() > 1) out.append(","); FilterText.quote(it.next().toString(), out); }
    return out.append("]").toString();
  }
  // typed: one row a text, in the order of texts()
  public void type(int column, InternalRow[] typed) {
    HashMap known = new HashMap();
    Iterator it = distinct(column).iterator();
    DataType kind = schema.fields()[column].dataType();
    for (int i = 0; i < typed.length; i++) known.put(it.next(), typed[i].isNullAt(0) ? null : typed[i].get(0, kind));
    values[column] = known;
  }
  // paths that Python is to resolve: a JSON array
  public String odd() {
    LinkedHashSet out = new LinkedHashSet();
    for (int i = 0; i < rows.length; i++) {
      String path = rows[i].getUTF8String(0).toString();
      if (rows[i].isNullAt(1) || decoded(path) == null) out.add(path);
    }
    return json(out);
  }
  // those of them whose size the log does not tell
  public String unsized() {
    LinkedHashSet out = new LinkedHashSet();
    for (int i = 0; i < rows.length; i++) if (rows[i].isNullAt(1)) out.add(rows[i].getUTF8String(0));
    return json(out);
  }
  public void place(String path, String place, String hadoop, String size) { odd.put(path, new String[]{place, hadoop, size}); }
  public void finish(String root, String hadoopRoot) {
    int n = rows.length, m = kinds.length;
    count = n;
    lengths = new long[n]; places = new String[n]; constants = new Object[n][]; descriptors = new String[n];
    hasVector = new boolean[n]; numbers = new int[n];
    for (int i = 0; i < n; i++) {
      InternalRow r = rows[i];
      String path = r.getUTF8String(0).toString();
      String[] known = (String[]) odd.get(path);
      String name = known == null ? decoded(path) : null;
      lengths[i] = r.isNullAt(1) ? Long.parseLong(known[2]) : r.getLong(1);
      places[i] = known == null ? hadoopRoot + name : known[1];
      descriptors[i] = r.isNullAt(2) ? null : r.getUTF8String(2).toString();
      hasVector[i] = descriptors[i] != null;
      numbers[i] = i;
      Object[] out = new Object[m];
      for (int j = 0; j < m; j++) {
        if (kinds[j] == 'p') out[j] = UTF8String.fromString(known == null ? root + name : known[0]);
        else if (r.isNullAt(3 + j)) out[j] = null;
        else if (kinds[j] == 't') out[j] = values[j].get(r.getUTF8String(3 + j));
        else out[j] = r.get(3 + j, schema.fields()[j].dataType());
      }
      constants[i] = out;
    }
  }
  void ask(int f, StringBuilder wanted) { wanted.append("\\n").append(f).append(" ").append(descriptors[f]); }
  // a relative path as a name, null where that takes more than its escapes
  static String decoded(String path) {
    if (rooted(path)) return null;
    if (path.indexOf('%') < 0) return path;
    try {
      byte[] in = path.getBytes("UTF-8");
      byte[] out = new byte[in.length];
      int n = 0;
      for (int i = 0; i < in.length; i++) {
        if (in[i] != '%') { out[n++] = in[i]; continue; }
        int high = i + 2 < in.length ? Character.digit((char) in[i + 1], 16) : -1;
        int low = high < 0 ? -1 : Character.digit((char) in[i + 2], 16);
        if (low < 0) return null;
        out[n++] = (byte) (high * 16 + low);
        i += 2;
      }
      String name = java.nio.charset.Charset.forName("UTF-8").newDecoder().decode(java.nio.ByteBuffer.wrap(out, 0, n)).toString();
      return rooted(name) ? null : name;
    } catch (java.io.IOException e) { return null; }
  }
  private static boolean rooted(String path) {
    if (path.startsWith("/") || ("/" + path + "/").contains("/../")) return true;
    int colon = path.indexOf(':');
    if (colon < 1 || !Character.isLetter(path.charAt(0))) return false;
    for (int i = 1; i < colon; i++) {
      char c = path.charAt(i);
      if (!(c < 128 && Character.isLetterOrDigit(c)) && c != '+' && c != '.' && c != '-') return false;
    }
    return true;
  }
}
"""

_BIND = """
public class Bind extends scala.runtime.AbstractPartialFunction {
  private final StructType schema;
  public Bind(StructType schema) { this.schema = schema; }
  public boolean isDefinedAt(Object e) { return e instanceof AttributeReference; }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!(e instanceof AttributeReference)) return otherwise.apply(e);
    int i = schema.fieldIndex(((AttributeReference) e).name());
    return new BoundReference(i, schema.fields()[i].dataType(), true);
  }
}
"""

#: Puts the files that a filter needs in place of all before Spark looks at sizes: so joins are planned with the size that
#: is really read, and the filters that a join makes for its other side look at the same files as the join.
_PLAN = """
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
public class Concerns extends scala.runtime.AbstractFunction1 {
  public Object apply(Object plan) { return Boolean.valueOf(Step.relation(plan) != null); }
}
public class Made extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) { return new PlanFiles(); }
}
"""

_STEP = """
public class Step extends scala.runtime.AbstractPartialFunction {
  static LogicalRelation relation(Object plan) {
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) return null;
    FileIndex index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return index instanceof TableFiles && !((TableFiles) index).isPlanned() ? (LogicalRelation) plan : null;
  }
  private static LogicalRelation below(Object plan) {
    return plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter
      ? relation(((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).child()) : null;
  }
  public boolean isDefinedAt(Object plan) { return relation(plan) != null || below(plan) != null; }
  public Object applyOrElse(Object plan, scala.Function1 otherwise) {
    if (relation(plan) != null) return planned(relation(plan), null);
    LogicalRelation below = below(plan);
    if (below == null) return otherwise.apply(plan);
    Expression condition = ((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).condition();
    return Copy.with(plan, "child", planned(below, FilterText.all(TableFiles.seq(Collections.singletonList(condition)))));
  }
  private static Object planned(LogicalRelation node, String filters) {
    TableFiles all = (TableFiles) ((HadoopFsRelation) node.relation()).location();
    long width = 8L;
    scala.collection.Iterator it = node.output().iterator();
    while (it.hasNext()) width += ((Expression) it.next()).dataType().defaultSize();
    return Copy.with(node, "relation", Copy.with(node.relation(), "location", all.planned(filters, width)));
  }
}
"""

_COPY = """
public class Copy {
  // a case class's copy takes one value more in some versions
  static Object with(Object node, String field, Object value) {
    scala.Product p = (scala.Product) node;
    java.lang.reflect.Method[] methods = node.getClass().getMethods();
    try {
      for (int k = 0; k < methods.length; k++) {
        if (!methods[k].getName().equals("copy") || methods[k].getParameterTypes().length < p.productArity()) continue;
        Object[] args = new Object[methods[k].getParameterTypes().length];
        for (int i = 0; i < p.productArity(); i++) {
          args[i] = p.productElementName(i).equals(field) ? value : p.productElement(i);
        }
        if (args.length > p.productArity()) {
          args[args.length - 1] = node.getClass().getMethod("sparkSession", new Class[0]).invoke(node, new Object[0]);
        }
        return methods[k].invoke(node, args);
      }
    } catch (Exception e) { throw new IllegalStateException("delta_core can't replace " + field, e); }
    throw new IllegalStateException("delta_core found no copy of " + node.getClass().getName());
  }
}
"""

#: Spark's Parquet source for files in which fields within columns have other names or are found by id. Plans, and so
#: filters and the choice of fields, use the table's names; the source itself, which is what executors get, the files'.
_RENAMED = """
public class RenamedParquet extends org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat {
  private final StructType shown;
  private final StructType stored;
  private final HashMap paths = new HashMap();
  public RenamedParquet(StructType shown, StructType stored) {
    this.shown = shown; this.stored = stored;
    collect(shown, stored, new ArrayList(), new ArrayList());
  }
  private void collect(StructType shown, StructType stored, ArrayList above, ArrayList below) {
    for (int i = 0; i < shown.length(); i++) {
      StructField a = shown.fields()[i], b = stored.fields()[i];
      above.add(a.name()); below.add(b.name());
      paths.put(quoted(above), quoted(below));
      if (a.dataType() instanceof StructType) collect((StructType) a.dataType(), (StructType) b.dataType(), above, below);
      above.remove(above.size() - 1); below.remove(below.size() - 1);
    }
  }
  private static String quoted(List names) {
    return new org.apache.spark.sql.connector.expressions.FieldReference(TableFiles.seq(names)).toString();
  }
  // what a struct that a plan may have narrowed is in the files; what the table does not have stays as it is
  private static StructType stored(StructType wanted, StructType shown, StructType stored) {
    StructField[] out = new StructField[wanted.length()];
    for (int i = 0; i < out.length; i++) {
      StructField field = wanted.fields()[i];
      scala.Option at = shown.getFieldIndex(field.name());
      if (at.isEmpty()) { out[i] = field; continue; }
      int k = ((Integer) at.get()).intValue();
      StructField file = stored.fields()[k];
      DataType type = stored(field.dataType(), shown.fields()[k].dataType(), file.dataType());
      Metadata about = file.metadata().equals(Metadata.empty()) ? field.metadata() : file.metadata();
      out[i] = new StructField(file.name(), type, field.nullable(), about);
    }
    return new StructType(out);
  }
  private static DataType stored(DataType wanted, DataType shown, DataType stored) {
    if (wanted instanceof StructType && shown instanceof StructType) {
      return stored((StructType) wanted, (StructType) shown, (StructType) stored);
    }
    if (wanted instanceof ArrayType && shown instanceof ArrayType) {
      ArrayType array = (ArrayType) wanted;
      return new ArrayType(stored(array.elementType(), ((ArrayType) shown).elementType(), ((ArrayType) stored).elementType()),
        array.containsNull());
    }
    if (wanted instanceof MapType && shown instanceof MapType) {
      MapType map = (MapType) wanted, a = (MapType) shown, b = (MapType) stored;
      return new MapType(stored(map.keyType(), a.keyType(), b.keyType()), stored(map.valueType(), a.valueType(), b.valueType()),
        map.valueContainsNull());
    }
    return wanted;
  }
  private Object stored(Object filter) {
    Object out = filter;
    scala.Product parts = (scala.Product) filter;
    for (int i = 0; i < parts.productArity(); i++) {
      Object part = parts.productElement(i), other = part;
      if (part instanceof org.apache.spark.sql.sources.Filter) other = stored(part);
      else if (parts.productElementName(i).equals("attribute") && paths.containsKey(part)) other = paths.get(part);
      if (other != part) out = Copy.with(out, parts.productElementName(i), other);
    }
    return out;
  }
  public scala.Function1 buildReaderWithPartitionValues(org.apache.spark.sql.SparkSession session, StructType data,
      StructType partition, StructType required, scala.collection.immutable.Seq filters,
      scala.collection.immutable.Map options, org.apache.hadoop.conf.Configuration conf) {
    ArrayList translated = new ArrayList();
    scala.collection.Iterator it = filters.iterator();
    while (it.hasNext()) translated.add(stored(it.next()));
    // a reader refers to the source that made it: executors do not have this class
    return new org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat().buildReaderWithPartitionValues(session,
      stored(data, shown, stored), partition, stored(required, shown, stored), TableFiles.seq(translated), options, conf);
  }
  public boolean equals(Object o) { return o instanceof RenamedParquet && ((RenamedParquet) o).stored.equals(stored); }
  public int hashCode() { return stored.hashCode(); }
}
"""

#: What Python calls. Each call from there takes a fifth of a millisecond, and a read would need two hundred of the small
#: ones: so a relation, a selection or a test of vectors is made in one.
_DRIVER = """
public class Driver {
  private static StructType struct(String json) { return (StructType) DataType$.MODULE$.fromJson(json); }
  // the rows of files, as Spark's own Parquet reader gives them; stored: the columns under the names that files have for
  // the fields within them, empty where these are the same
  public Object relation(org.apache.spark.sql.classic.SparkSession session, String root, String columns, String stored,
                         String constants, int vectorColumns, boolean byFieldId, String identity, long tableWidth,
                         java.util.function.Function python) {
    PlanFiles.install(session);
    StructType schema = struct(constants), shown = struct(columns);
    TableFiles files = new TableFiles(new Path(root), schema, vectorColumns, byFieldId, identity, tableWidth, python);
    // a file that is missing or broken is never passed over, whatever the session says
    HashMap options = new HashMap();
    options.put("ignoreMissingFiles", "false");
    options.put("ignoreCorruptFiles", "false");
    HadoopFsRelation relation = new HadoopFsRelation(files, schema, shown, scala.Option.apply(null),
      stored.isEmpty() ? new org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
        : new RenamedParquet(shown, struct(stored)),
      org.apache.spark.api.python.PythonUtils.toScalaMap(options), session);
    return session.baseRelationToDataFrame(relation);
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
  // names have no line's end: they are encoded
  public String inputFiles(org.apache.spark.sql.Dataset rows) { return String.join("\\n", (CharSequence[]) rows.inputFiles()); }
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
"""

#: Runs the sink that keeps a list of the files it committed, as a query of its own.
_WRITER = """
public class Writer {
  public void run(String names, List arguments, org.apache.spark.sql.classic.Dataset rows) throws Throwable {
    final org.apache.spark.sql.execution.streaming.Sink sink = sink(names.split("\\n"), arguments.toArray());
    final org.apache.spark.sql.classic.Dataset r = rows;
    org.apache.spark.sql.execution.SQLExecution.withNewExecutionId(
      r.queryExecution(), scala.Option.apply("delta_core write"),
      new scala.runtime.AbstractFunction0() { public Object apply() { sink.addBatch(0L, r); return null; } });
  }
  private static org.apache.spark.sql.execution.streaming.Sink sink(String[] names, Object[] arguments) throws Throwable {
    for (int i = 0; i < names.length; i++) {
      Class kind;
      try { kind = Class.forName(names[i], true, Thread.currentThread().getContextClassLoader()); }
      catch (ClassNotFoundException e) { continue; }
      java.lang.reflect.Constructor[] made = kind.getConstructors();
      for (int j = 0; j < made.length; j++) {
        if (made[j].getParameterTypes().length != arguments.length) continue;
        try { return (org.apache.spark.sql.execution.streaming.Sink) made[j].newInstance(arguments); }
        catch (java.lang.reflect.InvocationTargetException e) { throw e.getCause(); }
      }
    }
    throw new IllegalStateException("This Spark has none of the sinks " + Arrays.toString(names));
  }
  // of the stage in which it is evaluated
  public Column numTasks() {
    Class kind = org.apache.spark.TaskContext.class;
    scala.collection.immutable.Seq none = TableFiles.seq(new ArrayList());
    Expression context = new StaticInvoke(kind, new ObjectType(kind), "get", none, none, false, true, false,
      scala.Option.apply(null));
    return ExpressionUtils.column(new Invoke(context, "numPartitions", DataTypes.IntegerType, none, none, false, false, false));
  }
}
"""

_CLASSES = (
    _FILTER_TEXT, _BIND, _FOUND, _STATUS, _FILES, _FILES_ITERATOR, _GROUP, _LISTING, _REPLAY, _TABLE_FILES, _COPY, _STEP,
    _PLAN, _RENAMED, _DRIVER, _WRITER,
)  # fmt: skip
SOURCE = "".join((_IMPORTS, *_CLASSES))
