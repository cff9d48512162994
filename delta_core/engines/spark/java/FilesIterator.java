public class FilesIterator extends scala.collection.AbstractIterator {
  private final Files files;
  private int at = 0;
  public FilesIterator(Files files) { this.files = files; }
  public boolean hasNext() { return at < files.length(); }
  public Object next() { return files.apply(at++); }
}
