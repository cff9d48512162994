/**
 * The rows of a job that replayed a log, as files: paths resolved, partition values typed. Both are requested from Python by
 * distinct text, and of paths only the few that the log spells as URIs or in bytes that are no text.
 */
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
  // those of them whose size the log does not report
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
  void ask(int f, StringBuilder wanted) { wanted.append("\n").append(f).append(" ").append(descriptors[f]); }
  // a relative path as a name, null if that takes more than its escapes
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
