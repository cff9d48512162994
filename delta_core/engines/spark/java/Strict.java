/**
 * Casts in ANSI mode, whatever mode the session has; a try_cast stays one.
 */
public class Strict extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object e) { return e instanceof Cast && ((Cast) e).evalMode().equals(EvalMode$.MODULE$.LEGACY()); }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!isDefinedAt(e)) return otherwise.apply(e);
    Cast c = (Cast) e;
    return new Cast((Expression) (Object) c.child(), c.dataType(), c.timeZoneId(), EvalMode$.MODULE$.ANSI());
  }
}
