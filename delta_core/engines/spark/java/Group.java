public class Group {
  int[] files = new int[4];
  int count;
  void add(int f) {
    if (count == files.length) files = Arrays.copyOf(files, 2 * count);
    files[count++] = f;
  }
}
