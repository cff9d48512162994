public class LatestMade extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) { return new LatestRule(); }
}
