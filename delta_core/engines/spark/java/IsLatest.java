public class IsLatest extends scala.runtime.AbstractFunction1 {
  static LatestFiles files(Object plan) {
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) return null;
    FileIndex index = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return index instanceof LatestFiles ? (LatestFiles) index : null;
  }
  public Object apply(Object plan) { return Boolean.valueOf(files(plan) != null); }
}
