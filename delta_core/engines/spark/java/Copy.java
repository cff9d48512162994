public class Copy {
  // a case class's copy takes one value more in some versions
  static Object with(Object node, String field, Object value) {
    scala.Product p = (scala.Product) node;
    java.lang.reflect.Method[] methods = node.getClass().getMethods();
    try {
      for (int k = 0; k < methods.length; k++) {
        if (!methods[k].getName().equals("copy") || methods[k].getParameterTypes().length < p.productArity()) continue;
        Object[] args = new Object[methods[k].getParameterTypes().length];
        for (int i = 0; i < p.productArity(); i++) {
          args[i] = p.productElementName(i).equals(field) ? value : p.productElement(i);
        }
        if (args.length > p.productArity()) {
          args[args.length - 1] = node.getClass().getMethod("sparkSession", new Class[0]).invoke(node, new Object[0]);
        }
        return methods[k].invoke(node, args);
      }
    } catch (Exception e) { throw new IllegalStateException("delta_core can't replace " + field, e); }
    throw new IllegalStateException("delta_core found no copy of " + node.getClass().getName());
  }
}
