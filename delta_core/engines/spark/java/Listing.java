/**
 * Files that Python chose, from the file in which `delta_core.engines.spark.plan.handover` wrote them.
 */
public class Listing extends Found {
  private java.nio.ByteBuffer in;
  // of each file its block; of each block its first file, its places after their common prefix, and where
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
