public class Status extends FileStatus {
  private final transient Found from;
  private final transient int file;
  public Status(Found from, int file) {
    super(from.lengths[file], false, 1, 134217728L, 0L, null);
    this.from = from; this.file = file;
  }
  public Path getPath() { return new Path(from.place(file)); }
}
