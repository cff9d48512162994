package delta;
import java.lang.reflect.*;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * The parser of a session, which passes statements about whole tables to Python: Spark's grammar lacks most of them.
 */
public class Parser implements InvocationHandler {
  private static final String SPACE = "(?:\\s|--[^\\n]*(?:\\n|\\z)|/\\*.*?\\*/)";
  private static final Pattern OWN = Pattern.compile(
    SPACE + "*(?:(?:OPTIMIZE|REORG|VACUUM|RESTORE|GENERATE|CONVERT" + SPACE + "+TO|DESC(?:RIBE)?" + SPACE
    + "+(?:HISTORY|DETAIL)|ALTER" + SPACE + "+TABLE|COMMENT" + SPACE + "+ON" + SPACE + "+TABLE|TRUNCATE" + SPACE
    + "+TABLE|SHOW" + SPACE + "+CREATE" + SPACE + "+TABLE)" + SPACE + "|(?:CREATE|REPLACE)\\b.*\\bCLONE\\b)", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  private final SparkSession session;
  private final Object parser;
  private Parser(SparkSession session, Object parser) { this.session = session; this.parser = parser; }

  static Object around(SparkSession session, Object parser) {
    return Proxy.newProxyInstance(Parser.class.getClassLoader(), new Class[]{ParserInterface.class},
      new Parser(session, parser));
  }
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().startsWith("parsePlan") && OWN.matcher((String) arguments[0]).lookingAt()) {
      Object schema = Python.call(new Object[]{"parse", session, arguments[0]});
      if (schema != null) return Statement.of("text", arguments[0], null, false, (String) schema);
    }
    try { return method.invoke(parser, arguments); }
    catch (InvocationTargetException e) { throw e.getCause(); }
  }
}
