package delta;
import java.util.*;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.sources.*;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A format other than "delta". Spark finds it by the name of a subclass DefaultSource in a package of the format's name.
 */
public class FormatSource implements RelationProvider, CreatableRelationProvider {
  private final String name;
  public FormatSource(String name) { this.name = name; }
  /** Whether a name is that of a format, as a table's provider. */
  static boolean isName(String name) {
    try {
      String found = name.toLowerCase(Locale.ROOT) + ".DefaultSource";
      return FormatSource.class.isAssignableFrom(Class.forName(found, false, FormatSource.class.getClassLoader()));
    }
    catch (ClassNotFoundException e) { return false; }
    catch (LinkageError e) { return false; }
  }
  /** Whether the parts of a name are a format and a path: names of tables have no slash. */
  static boolean isPath(List names) {
    return names.size() == 2 && ((String) names.get(1)).indexOf('/') >= 0 && isName((String) names.get(0));
  }
  public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map options) {
    return new Rows(context, Python.call(new Object[]{"format", name, context.sparkSession(), CollectionConverters.asJava(options)}));
  }
  public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset data) {
    Python.call(new Object[]{"save", name, context.sparkSession(), CollectionConverters.asJava(options), mode.name(), data});
    return new Rows(context, data);
  }
}
