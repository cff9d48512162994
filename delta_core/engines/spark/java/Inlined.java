/**
 * Replaces references to an expression that is written once (as the operand of BETWEEN is) by the expression itself.
 */
public class Inlined extends scala.runtime.AbstractPartialFunction {
  private final Map values;
  public Inlined(Map values) { this.values = values; }
  public boolean isDefinedAt(Object e) {
    return e instanceof With || e instanceof CommonExpressionRef && values.containsKey(((CommonExpressionRef) e).id());
  }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!isDefinedAt(e)) return otherwise.apply(e);
    if (e instanceof CommonExpressionRef) return values.get(((CommonExpressionRef) e).id());
    HashMap own = new HashMap();
    scala.collection.Iterator it = ((With) e).defs().iterator();
    while (it.hasNext()) {
      CommonExpressionDef def = (CommonExpressionDef) it.next();
      own.put(def.id(), def.child());
    }
    return ((Expression) (Object) ((With) e).child()).transformUp(new Inlined(own));
  }
}
