/**
 * The versions of tables that one query reads, and the plans that are in it already.
 */
public class Versions {
  private final HashMap versions = new HashMap();
  private final IdentityHashMap used = new IdentityHashMap();
  synchronized LogicalPlan rows(LatestFiles files, String request, boolean metadata) {
    java.util.function.Function version = (java.util.function.Function) versions.get(files.table);
    if (version == null) {
      version = (java.util.function.Function) files.python.apply("open " + request);
      versions.put(files.table, version);
    }
    LogicalPlan rows = files.rows(version, metadata);
    return used.put(rows, Boolean.TRUE) == null ? rows : Renewed.of(rows);
  }
}
