public class Files extends scala.collection.immutable.AbstractSeq {
  private final Found from;
  private final int[] numbers;
  private final int count;
  public Files(Found from, int[] numbers, int count) { this.from = from; this.numbers = numbers; this.count = count; }
  public int length() { return count; }
  // named since two superclasses have one: javac requires which
  public scala.collection.SeqFactory iterableFactory() { return scala.collection.immutable.Seq$.MODULE$; }
  public int knownSize() { return count; }
  public Object apply(int i) {
    if (i < 0 || i >= count) throw new IndexOutOfBoundsException(String.valueOf(i));
    return new FileStatusWithMetadata(new Status(from, numbers[i]),
      (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
  }
  public Object apply(Object i) { return apply(((Integer) i).intValue()); }
  public boolean isDefinedAt(int i) { return i >= 0 && i < count; }
  public boolean isDefinedAt(Object i) { return isDefinedAt(((Integer) i).intValue()); }
  public scala.collection.Iterator iterator() { return new FilesIterator(this); }
}
