"""Java that runs in the driver alone, compiled there at run time: the file index, and the rule that prunes it.

Both touch files, never rows, and are never shipped: what executors run are Spark's own classes.
"""

from __future__ import annotations

__all__ = ["PACKAGE", "SOURCE"]

PACKAGE = "delta_core_driver"

_IMPORTS = """
package delta_core_driver;
import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.*;
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
  private static void quote(String s, StringBuilder out) {
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

#: The files of one snapshot: every file is a partition of its own, whose values are its constants.
_TABLE_FILES = """
public class TableFiles implements FileIndex {
  private final Path root;
  private final StructType schema;
  private final FileStatus[] files;
  private final Object[][] constants;
  private final boolean[] hasVector;
  private final int vectorColumns;
  private final boolean byFieldId;
  private final java.util.function.Function python;
  private final java.lang.ref.SoftReference[] vectors;
  private final int[] chosen;
  private final long size;
  // rows: path, size, modification time, whether there is a vector, then the constants
  public TableFiles(Path root, StructType schema, InternalRow[] rows, Integer vectorColumns, Boolean byFieldId,
                    java.util.function.Function python) {
    this.root = root; this.schema = schema; this.vectorColumns = vectorColumns.intValue();
    this.byFieldId = byFieldId.booleanValue(); this.python = python; this.chosen = null;
    StructField[] fields = schema.fields();
    int n = rows.length, m = fields.length - this.vectorColumns;
    files = new FileStatus[n]; constants = new Object[n][]; hasVector = new boolean[n];
    vectors = new java.lang.ref.SoftReference[n];
    long total = 0L;
    for (int i = 0; i < n; i++) {
      InternalRow r = rows[i];
      files[i] = new FileStatus(r.getLong(1), false, 1, 134217728L, r.getLong(2), new Path(r.getUTF8String(0).toString()));
      total += r.getLong(1);
      hasVector[i] = r.getBoolean(3);
      Object[] values = new Object[m];
      for (int j = 0; j < m; j++) values[j] = r.isNullAt(4 + j) ? null : r.get(4 + j, fields[j].dataType());
      constants[i] = values;
    }
    size = total;
  }
  private TableFiles(TableFiles base, int[] chosen) {
    root = base.root; schema = base.schema; files = base.files; constants = base.constants; hasVector = base.hasVector;
    vectorColumns = base.vectorColumns; byFieldId = base.byFieldId; python = base.python; vectors = base.vectors;
    this.chosen = chosen;
    long total = 0L;
    for (int i = 0; i < chosen.length; i++) total += files[chosen[i]].getLen();
    size = total;
  }
  public boolean isPruned() { return chosen != null; }
  public TableFiles prune(scala.collection.Seq filters) {
    byte[] keep = (byte[]) python.apply("prune " + FilterText.all(filters));
    if (keep == null) return this;
    int count = 0;
    for (int i = 0; i < keep.length; i++) if (keep[i] != 0) count++;
    int[] found = new int[count];
    for (int i = 0, at = 0; i < keep.length; i++) if (keep[i] != 0) found[at++] = i;
    return new TableFiles(this, found);
  }
  public scala.collection.immutable.Seq rootPaths() { return seq(Collections.singletonList(root)); }
  public StructType partitionSchema() { return schema; }
  public void refresh() {}
  public long sizeInBytes() { return size; }
  public String[] inputFiles() {
    int n = count();
    String[] out = new String[n];
    for (int i = 0; i < n; i++) out[i] = SparkPath(files[at(i)].getPath());
    return out;
  }
  private static String SparkPath(Path p) { return p.toUri().toString(); }
  private int count() { return chosen == null ? files.length : chosen.length; }
  private int at(int i) { return chosen == null ? i : chosen[i]; }
  public scala.collection.immutable.Seq listFiles(scala.collection.immutable.Seq partitionFilters,
                                                  scala.collection.immutable.Seq dataFilters) {
    if (byFieldId && !org.apache.spark.sql.internal.SQLConf$.MODULE$.get().parquetFieldIdReadEnabled()) {
      throw new IllegalStateException("This table's columns are found by field id: "
        + "set spark.sql.parquet.fieldId.read.enabled to true in the session, as delta_core.spark.read did.");
    }
    TableFiles from = this;
    if (chosen == null && !(partitionFilters.isEmpty() && dataFilters.isEmpty())) {
      from = prune((scala.collection.Seq) partitionFilters.$plus$plus(dataFilters));
    }
    return from.list(partitionFilters);
  }
  private scala.collection.immutable.Seq list(scala.collection.immutable.Seq filters) {
    BasePredicate[] tests = new BasePredicate[filters.size()];
    for (int i = 0; i < tests.length; i++) {
      Expression test = (Expression) filters.apply(i);
      tests[i] = Predicate$.MODULE$.createInterpreted((Expression) test.transform(new Bind(schema)));
      tests[i].initialize(0);
    }
    ArrayList left = new ArrayList();
    for (int i = 0; i < count(); i++) {
      int f = at(i);
      if (files[f].getLen() > 0L && passes(tests, row(f, null))) left.add(new Integer(f));
    }
    Object[][] loaded = load(left);
    ArrayList out = new ArrayList(left.size());
    for (int i = 0; i < left.size(); i++) {
      int f = ((Integer) left.get(i)).intValue();
      FileStatusWithMetadata file = new FileStatusWithMetadata(files[f],
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
      out.add(new PartitionDirectory(row(f, loaded[i]), seq(Collections.singletonList(file))));
    }
    return seq(out);
  }
  private static boolean passes(BasePredicate[] tests, InternalRow row) {
    for (int i = 0; i < tests.length; i++) if (!tests[i].eval(row)) return false;
    return true;
  }
  private InternalRow row(int f, Object[] vector) {
    Object[] values = Arrays.copyOf(constants[f], constants[f].length + vectorColumns);
    if (vector != null) System.arraycopy(vector, 0, values, constants[f].length, vectorColumns);
    return new GenericInternalRow(values);
  }
  // vectors of the files that are read, and of no others; they may be dropped again when memory is short
  private synchronized Object[][] load(ArrayList left) {
    Object[][] out = new Object[left.size()][];
    if (vectorColumns == 0) return out;
    StringBuilder wanted = new StringBuilder();
    HashMap missing = new HashMap();
    for (int i = 0; i < out.length; i++) {
      int f = ((Integer) left.get(i)).intValue();
      if (!hasVector[f]) continue;
      out[i] = vectors[f] == null ? null : (Object[]) vectors[f].get();
      if (out[i] == null) { missing.put(left.get(i), new Integer(i)); wanted.append(" ").append(f); }
    }
    if (missing.isEmpty()) return out;
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
          out[((Integer) missing.remove(new Integer(number))).intValue()] = vector;
          vectors[number] = new java.lang.ref.SoftReference(vector);
        }
      } finally { in.close(); }
    } catch (java.io.IOException e) { throw new IllegalStateException("The deleted rows can't be handed to Spark", e); }
    finally { file.delete(); }
    if (!missing.isEmpty()) throw new IllegalStateException("The deleted rows of " + missing.size() + " files are missing");
    return out;
  }
  public boolean equals(Object o) {
    return o instanceof TableFiles && ((TableFiles) o).files == files && Arrays.equals(((TableFiles) o).chosen, chosen);
  }
  public int hashCode() { return System.identityHashCode(files) * 31 + Arrays.hashCode(chosen); }
  public String toString() { return "delta_core " + root; }
  static scala.collection.immutable.Seq seq(List list) { return CollectionConverters.asScala(list).toSeq(); }
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

#: Puts the files that a filter needs in place of all: so joins are planned with the size that is really read.
_PRUNE = """
public class PruneFiles extends org.apache.spark.sql.catalyst.rules.Rule {
  public TreeNode apply(TreeNode plan) { return ((LogicalPlan) plan).transform(new Step()); }
  public String ruleName() { return "delta_core_driver.PruneFiles"; }
  public static void install(org.apache.spark.sql.ExperimentalMethods methods) {
    ArrayList rules = new ArrayList();
    scala.collection.Iterator it = methods.extraOptimizations().iterator();
    while (it.hasNext()) {
      Object rule = it.next();
      if (rule instanceof PruneFiles) return;
      rules.add(rule);
    }
    rules.add(new PruneFiles());
    methods.extraOptimizations_$eq(TableFiles.seq(rules));
  }
}
"""

_STEP = """
public class Step extends scala.runtime.AbstractPartialFunction {
  private static TableFiles files(Object plan) {
    if (!(plan instanceof org.apache.spark.sql.catalyst.plans.logical.Filter)) return null;
    LogicalPlan child = ((org.apache.spark.sql.catalyst.plans.logical.Filter) plan).child();
    if (!(child instanceof LogicalRelation)) return null;
    if (!(((LogicalRelation) child).relation() instanceof HadoopFsRelation)) return null;
    FileIndex index = ((HadoopFsRelation) ((LogicalRelation) child).relation()).location();
    return index instanceof TableFiles && !((TableFiles) index).isPruned() ? (TableFiles) index : null;
  }
  public boolean isDefinedAt(Object plan) { return files(plan) != null; }
  public Object applyOrElse(Object plan, scala.Function1 otherwise) {
    TableFiles all = files(plan);
    if (all == null) return otherwise.apply(plan);
    org.apache.spark.sql.catalyst.plans.logical.Filter filter = (org.apache.spark.sql.catalyst.plans.logical.Filter) plan;
    TableFiles left = all.prune(TableFiles.seq(Collections.singletonList(filter.condition())));
    if (left == all) return plan;
    LogicalRelation relation = (LogicalRelation) filter.child();
    Object pruned = copy(relation, "relation", copy(relation.relation(), "location", left));
    return copy(filter, "child", pruned);
  }
  // a case class's copy takes one value more in some versions
  private static Object copy(Object node, String field, Object value) {
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

SOURCE = _IMPORTS + _FILTER_TEXT + _BIND + _TABLE_FILES + _STEP + _PRUNE
