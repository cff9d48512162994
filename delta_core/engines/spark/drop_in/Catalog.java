package delta;
import java.util.*;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The session's own catalog, in which tables of the format delta have the schema and properties of their logs.
 */
public class Catalog extends DelegatingCatalogExtension {
  static boolean isPath(String namespace, String name) {
    return namespace.equalsIgnoreCase("delta") && name.indexOf('/') >= 0;  // which names of tables have not
  }
  static String path(Identifier name) {
    return name.namespace().length == 1 && isPath(name.namespace()[0], name.name()) ? name.name() : null;
  }
  // the entry of a table of ours, null for other tables and views
  private CatalogTable entry(Table table) {
    if (!(table instanceof V1Table)) return null;
    CatalogTable found = ((V1Table) table).v1Table();
    return found.provider().isDefined() && "delta".equalsIgnoreCase((String) found.provider().get()) ? found : null;
  }
  boolean isDelta(Identifier name) {
    if (path(name) != null) return true;
    try { return entry(super.loadTable(name)) != null; }
    catch (Exception e) { return false; }  // Spark reports what is wrong with the name
  }
  // the format, the place and the options' names of a table of another format of this library; null for other tables
  List format(Identifier name) {
    CatalogTable found;
    try {
      Table table = path(name) == null ? super.loadTable(name) : null;
      if (!(table instanceof V1Table)) return null;
      found = ((V1Table) table).v1Table();
    }
    catch (Exception e) { return null; }
    if (!found.provider().isDefined() || !FormatSource.isName((String) found.provider().get())) return null;
    ArrayList out = new ArrayList();
    out.add(found.provider().get());
    out.add(new org.apache.hadoop.fs.Path(found.location()).toString());
    for (Object option : CollectionConverters.asJava(found.storage().properties()).keySet()) {
      if (!"path".equalsIgnoreCase((String) option) && !"serialization.format".equals(option)) out.add(option);
    }
    return out;
  }
  private NamedTable table(Identifier name, Table found, Object version, Object micros) {
    if (path(name) != null) return new NamedTable(name, path(name), null, version, micros);
    CatalogTable entry = entry(found);
    if (entry == null) return null;
    return new NamedTable(name, new org.apache.hadoop.fs.Path(entry.location()).toString(), entry, version, micros);
  }
  private Table loaded(Identifier name) throws NoSuchTableException {
    return path(name) == null ? super.loadTable(name) : null;
  }
  public Table loadTable(Identifier name) throws NoSuchTableException {
    Table found = loaded(name), ours = table(name, found, null, null);
    return ours == null ? found : ours;
  }
  public Table loadTable(Identifier name, String version) throws NoSuchTableException {
    Table ours = table(name, loaded(name), version, null);
    return ours == null ? super.loadTable(name, version) : ours;
  }
  public Table loadTable(Identifier name, long micros) throws NoSuchTableException {
    Table ours = table(name, loaded(name), null, new Long(micros));
    return ours == null ? super.loadTable(name, micros) : ours;
  }
  public boolean tableExists(Identifier name) {
    if (path(name) == null) return super.tableExists(name);
    return ((Boolean) Python.call(new Object[]{"exists", path(name)})).booleanValue();
  }
  private void check(boolean ours, String what) { if (ours) Python.call(new Object[]{"reject", what}); }

  // statements about tables of ours are taken out of plans before Spark runs them: what arrives here is of another form
  public Table alterTable(Identifier name, TableChange[] changes) throws NoSuchTableException {
    check(isDelta(name), "ALTER TABLE in this form (" + (changes.length > 0 ? changes[0].getClass().getSimpleName() : "") + ")");
    return super.alterTable(name, changes);
  }
  public Table createTable(Identifier name, org.apache.spark.sql.connector.catalog.Column[] columns, Transform[] partitions, Map properties)
      throws org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException,
        org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
    check("delta".equalsIgnoreCase((String) properties.get("provider")), "CREATE TABLE in this form");
    return super.createTable(name, columns, partitions, properties);
  }
  public Table createTable(Identifier name, org.apache.spark.sql.types.StructType columns, Transform[] partitions, Map properties)
      throws org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException,
        org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException {
    check("delta".equalsIgnoreCase((String) properties.get("provider")), "CREATE TABLE in this form");
    return super.createTable(name, columns, partitions, properties);
  }
}
