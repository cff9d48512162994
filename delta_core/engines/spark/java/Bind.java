public class Bind extends scala.runtime.AbstractPartialFunction {
  private final StructType schema;
  public Bind(StructType schema) { this.schema = schema; }
  public boolean isDefinedAt(Object e) { return e instanceof AttributeReference; }
  public Object applyOrElse(Object e, scala.Function1 otherwise) {
    if (!(e instanceof AttributeReference)) return otherwise.apply(e);
    int i = schema.fieldIndex(((AttributeReference) e).name());
    return new BoundReference(i, schema.fields()[i].dataType(), true);
  }
}
