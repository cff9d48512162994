package delta;
import java.util.*;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.*;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.*;

/**
 * A table by its name, at the version that it has when it is first looked at.
 */
public class NamedTable implements V2TableWithV1Fallback {
  final String place;
  private final Identifier name;
  private final CatalogTable entry;
  private final Object version, micros;
  private java.util.function.Function opened;
  NamedTable(Identifier name, String place, CatalogTable entry, Object version, Object micros) {
    this.name = name; this.place = place; this.entry = entry; this.version = version; this.micros = micros;
  }
  private synchronized java.util.function.Function opened() {
    if (opened == null) {
      Object session = org.apache.spark.sql.classic.SparkSession.active();
      opened = (java.util.function.Function) Python.call(new Object[]{"table", session, place, version, micros});
    }
    return opened;
  }
  // the rows of that version, for the options of a relation; Spark finds the table's entry by them
  LogicalPlan rows(Map options) {
    Object rows = opened().apply(new HashMap(options));
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    return entry == null ? plan : (LogicalPlan) plan.transform(new Entered());
  }
  private class Entered extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return node instanceof LogicalRelation; }
    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      return Python.with((LogicalPlan) node, "catalogTable", scala.Option.apply(entry));
    }
  }
  // texts, which Python returns escaped as in a URL
  private String[] texts(String what) {
    String found = (String) opened().apply(what);
    String[] out = found.isEmpty() ? new String[0] : found.split("&", -1);
    try { for (int i = 0; i < out.length; i++) out[i] = java.net.URLDecoder.decode(out[i], "UTF-8"); }
    catch (java.io.UnsupportedEncodingException e) { throw new IllegalStateException(e.getMessage(), e); }
    return out;
  }

  public String name() { return name.toString(); }
  public StructType schema() { return (StructType) DataType$.MODULE$.fromJson(texts("schema")[0]); }
  public Transform[] partitioning() {
    String[] names = texts("partitions");
    Transform[] out = new Transform[names.length];
    for (int i = 0; i < out.length; i++) out[i] = Expressions.identity("`" + names[i].replace("`", "``") + "`");
    return out;
  }
  public Map properties() {
    String[] texts = texts("properties");
    HashMap out = new HashMap();
    for (int i = 0; i + 1 < texts.length; i += 2) out.put(texts[i], texts[i + 1]);
    out.put("provider", "delta");
    out.put("location", place);
    if (entry != null && entry.tableType().name().equals("EXTERNAL")) out.put("external", "true");
    return out;
  }
  public Set capabilities() {
    return new HashSet(Arrays.asList(new Object[]{TableCapability.BATCH_READ, TableCapability.ACCEPT_ANY_SCHEMA}));
  }
  // for what Spark does with the place alone
  public CatalogTable v1Table() {
    if (entry == null) Python.call(new Object[]{"reject", "a path where a stream takes a table's name. Use start(path)"});
    return entry;
  }
}
