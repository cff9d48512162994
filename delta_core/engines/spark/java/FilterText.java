/**
 * A filter as JSON that keeps values exact; what Python could not judge is null.
 */
public class FilterText {
  public static String all(scala.collection.Seq filters) {
    StringBuilder out = new StringBuilder("[");
    FilterText text = new FilterText();
    scala.collection.Iterator it = filters.iterator();
    while (it.hasNext()) { if (out.length() > 1) out.append(","); text.write(it.next(), out); }
    return out.append("]").toString();
  }
  protected void write(Object node, StringBuilder out) {
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
    else if (e instanceof Literal && (plain(e.dataType()) || e.dataType() instanceof NullType)) {
      literal(((Literal) e).value(), e.dataType(), out);
    }
    else column(e, out);
  }
  private void one(String name, Object a, StringBuilder out) {
    out.append("[\"").append(name).append("\","); write(a, out); out.append("]");
  }
  private void two(String name, Object a, Object b, StringBuilder out) {
    out.append("[\"").append(name).append("\","); write(a, out); out.append(","); write(b, out); out.append("]");
  }
  private void in(In e, StringBuilder out) {
    out.append("[\"in\","); write(e.value(), out);
    scala.collection.Iterator it = e.list().iterator();
    while (it.hasNext()) { out.append(","); write(it.next(), out); }
    out.append("]");
  }
  private void inSet(InSet e, StringBuilder out) {
    out.append("[\"in\","); write(e.child(), out);
    scala.collection.Iterator it = e.hset().iterator();
    while (it.hasNext()) { out.append(","); literal(it.next(), ((Expression) (Object) e.child()).dataType(), out); }
    out.append("]");
  }
  protected static boolean plain(DataType t) {
    return t instanceof StringType ? t.equals(DataTypes.StringType) : t instanceof AtomicType;
  }
  // what Python can't judge
  protected void other(Expression e, StringBuilder out) { out.append("null"); }
  protected String name(AttributeReference column) { return column.name(); }
  private void column(Expression e, StringBuilder out) {
    ArrayList names = new ArrayList();
    Expression at = e;
    while (at instanceof GetStructField) {
      GetStructField f = (GetStructField) at;
      names.add(0, ((StructType) ((Expression) (Object) f.child()).dataType()).fieldNames()[f.ordinal()]);
      at = (Expression) (Object) f.child();
    }
    if (!(at instanceof AttributeReference) || !(plain(e.dataType()) || e.dataType() instanceof StructType)) {
      other(e, out); return;
    }
    names.add(0, name((AttributeReference) at));
    out.append("[\"column\"");
    for (int i = 0; i < names.size(); i++) { out.append(","); quote((String) names.get(i), out); }
    out.append("]");
  }
  protected static void literal(Object v, DataType t, StringBuilder out) {
    if (!plain(t) && !(t instanceof NullType)) { out.append("null"); return; }
    out.append("[\"literal\",").append(t.json()).append(",");
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
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 32 || c > 126) {
        String h = Integer.toHexString(c);
        out.append("\\u0000".substring(0, 6 - h.length())).append(h);
      }
      else out.append(c);
    }
    out.append('"');
  }
}
