/**
 * Spark's Parquet source for files in which fields within columns have other names or are found by id. Plans, and so
 * filters and the choice of fields, use the table's names; the source itself, which is what executors get, the files'.
 * Row groups are not skipped by filters that NaN passes: it is the greatest number for Spark, and statistics leave it out.
 */
public class RenamedParquet extends org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat {
  private final StructType shown;
  private final StructType stored;
  private final HashMap paths = new HashMap();
  private final HashSet floats = new HashSet();
  public RenamedParquet(StructType shown, StructType stored) {
    this.shown = shown; this.stored = stored;
    collect(shown, stored, new ArrayList(), new ArrayList());
  }
  private void collect(StructType shown, StructType stored, ArrayList above, ArrayList below) {
    for (int i = 0; i < shown.length(); i++) {
      StructField a = shown.fields()[i], b = stored.fields()[i];
      above.add(a.name()); below.add(b.name());
      paths.put(quoted(above), quoted(below));
      if (a.dataType() instanceof FloatType || a.dataType() instanceof DoubleType) floats.add(quoted(above));
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
  public boolean hasFloats() { return !floats.isEmpty(); }
  private boolean passesNaN(Object filter) {
    scala.Product parts = (scala.Product) filter;
    boolean isFloat = false, isNaN = false, isWithin = false;
    for (int i = 0; i < parts.productArity(); i++) {
      Object part = parts.productElement(i);
      if (part instanceof org.apache.spark.sql.sources.Filter) isWithin |= passesNaN(part);
      else if (parts.productElementName(i).equals("attribute")) isFloat = floats.contains(part);
      else if (part instanceof Object[]) { for (int k = 0; k < ((Object[]) part).length; k++) isNaN |= isNaN(((Object[]) part)[k]); }
      else isNaN |= isNaN(part);
    }
    if (filter instanceof org.apache.spark.sql.sources.Not) {
      String[] names = ((org.apache.spark.sql.sources.Filter) filter).references();
      for (int i = 0; i < names.length; i++) isWithin |= floats.contains(names[i]);
    }
    return isWithin || isFloat && (isNaN || filter instanceof org.apache.spark.sql.sources.GreaterThan
      || filter instanceof org.apache.spark.sql.sources.GreaterThanOrEqual);
  }
  private static boolean isNaN(Object value) {
    return value instanceof Double && ((Double) value).isNaN() || value instanceof Float && ((Float) value).isNaN();
  }
  public scala.Function1 buildReaderWithPartitionValues(org.apache.spark.sql.SparkSession session, StructType data,
      StructType partition, StructType required, scala.collection.immutable.Seq filters,
      scala.collection.immutable.Map options, org.apache.hadoop.conf.Configuration conf) {
    ArrayList translated = new ArrayList();
    scala.collection.Iterator it = filters.iterator();
    while (it.hasNext()) {
      Object filter = it.next();
      if (!passesNaN(filter)) translated.add(stored(filter));
    }
    // a reader refers to the source that made it: executors do not have this class
    return new org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat().buildReaderWithPartitionValues(session,
      stored(data, shown, stored), partition, stored(required, shown, stored), TableFiles.seq(translated), options, conf);
  }
  public boolean equals(Object o) { return o instanceof RenamedParquet && ((RenamedParquet) o).stored.equals(stored); }
  public int hashCode() { return stored.hashCode(); }
}
