/**
 * Makes a session the thread's own for a while: Spark parses and analyzes expressions by the settings of the thread's.
 */
public class Active {
  private final scala.Option before = org.apache.spark.sql.classic.SparkSession$.MODULE$.getActiveSession();
  public Active(org.apache.spark.sql.classic.SparkSession session) {
    org.apache.spark.sql.classic.SparkSession$.MODULE$.setActiveSession(session);
  }
  public void end() {
    if (before.isEmpty()) org.apache.spark.sql.classic.SparkSession$.MODULE$.clearActiveSession();
    else org.apache.spark.sql.classic.SparkSession$.MODULE$.setActiveSession((org.apache.spark.sql.classic.SparkSession) before.get());
  }
}
