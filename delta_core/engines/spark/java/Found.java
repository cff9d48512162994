/**
 * Files as they are handed over, each with the number that Python uses for it.
 */
public abstract class Found {
  int count;
  long[] lengths;
  boolean[] hasVector;
  int[] numbers;
  java.lang.ref.SoftReference[] vectors;
  private long bytes = -1L;
  // where a file lies, as Hadoop spells it
  abstract String place(int f);
  // one of its constants
  abstract Object constant(int f, int column);
  // all of them, to be compared
  abstract List constants(int f);
  Integer number(int f) { return new Integer(numbers[f]); }
  // adds what Python is to be notified of a file whose vector is requested
  void ask(int f, StringBuilder wanted) { wanted.append(" ").append(numbers[f]); }
  synchronized long bytes() {
    if (bytes < 0L) {
      bytes = 0L;
      for (int f = 0; f < count; f++) bytes += lengths[f];
    }
    return bytes;
  }
  // whether these are the same files of one version, if a file's place reports all else of it
  boolean sameFiles(Found other) {
    if (other == this) return true;
    if (other == null || other.count != count || other.bytes() != bytes()) return false;
    for (int f = 0; f < count; f++) if (!place(f).equals(other.place(f))) return false;
    return true;
  }
}
