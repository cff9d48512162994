/**
 * Runs the sink that keeps a list of the files it committed, as a query of its own.
 */
public class Writer {
  public void run(String names, List arguments, org.apache.spark.sql.classic.Dataset rows) throws Throwable {
    final org.apache.spark.sql.execution.streaming.Sink sink = sink(names.split("\n"), arguments.toArray());
    final org.apache.spark.sql.classic.Dataset r = rows;
    org.apache.spark.sql.execution.SQLExecution.withNewExecutionId(
      r.queryExecution(), scala.Option.apply("delta_core write"),
      new scala.runtime.AbstractFunction0() { public Object apply() { sink.addBatch(0L, r); return null; } });
  }
  private static org.apache.spark.sql.execution.streaming.Sink sink(String[] names, Object[] arguments) throws Throwable {
    for (int i = 0; i < names.length; i++) {
      Class kind;
      try { kind = Class.forName(names[i], true, Thread.currentThread().getContextClassLoader()); }
      catch (ClassNotFoundException e) { continue; }
      java.lang.reflect.Constructor[] made = kind.getConstructors();
      for (int j = 0; j < made.length; j++) {
        if (made[j].getParameterTypes().length != arguments.length) continue;
        try { return (org.apache.spark.sql.execution.streaming.Sink) made[j].newInstance(arguments); }
        catch (java.lang.reflect.InvocationTargetException e) { throw e.getCause(); }
      }
    }
    throw new IllegalStateException("This Spark has none of the sinks " + Arrays.toString(names));
  }
  // of the stage in which it is evaluated
  public Column numTasks() {
    Class kind = org.apache.spark.TaskContext.class;
    scala.collection.immutable.Seq none = TableFiles.seq(new ArrayList());
    Expression context = new StaticInvoke(kind, new ObjectType(kind), "get", none, none, false, true, false,
      scala.Option.apply(null));
    return ExpressionUtils.column(new Invoke(context, "numPartitions", DataTypes.IntegerType, none, none, false, false, false));
  }
}
