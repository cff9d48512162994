public class Concerns extends scala.runtime.AbstractFunction1 {
  public Object apply(Object plan) { return Boolean.valueOf(Step.relation(plan) != null); }
}
