/**
 * The numbered files beside the checkpoint of a query that hold the schemas of a source.
 */
public class StreamLog {
  private static org.apache.hadoop.conf.Configuration settings(org.apache.spark.sql.classic.SparkSession session) {
    return session.sessionState().newHadoopConf();
  }
  public String qualified(org.apache.spark.sql.classic.SparkSession session, String folder) throws java.io.IOException {
    Path place = new Path(folder);
    return place.getFileSystem(settings(session)).makeQualified(place).toString();
  }
  // of each file, its number and text
  public List read(org.apache.spark.sql.classic.SparkSession session, String folder) throws java.io.IOException {
    Path place = new Path(folder);
    FileSystem files = place.getFileSystem(settings(session));
    ArrayList out = new ArrayList();
    if (!files.exists(place)) return out;
    FileStatus[] found = files.listStatus(place);
    for (int i = 0; i < found.length; i++) {
      String name = found[i].getPath().getName();
      if (!name.matches("[0-9]+")) continue;
      out.add(name);
      out.add(StreamSource.text(files, found[i].getPath()));
    }
    return out;
  }
  // false if there is such a file already
  public boolean add(org.apache.spark.sql.classic.SparkSession session, String folder, String number, String text)
      throws java.io.IOException {
    Path place = new Path(folder, number), made = new Path(folder, "." + number + "." + UUID.randomUUID() + ".tmp");
    FileSystem files = place.getFileSystem(settings(session));
    files.mkdirs(place.getParent());
    if (files.exists(place)) return false;
    byte[] bytes = text.getBytes("UTF-8");
    FSDataOutputStream out = files.create(made, true);
    try { out.write(bytes, 0, bytes.length); } finally { out.close(); }
    try {
      FileContext.getFileContext(place.toUri(), settings(session)).rename(made, place, new Options.Rename[0]);
      return true;
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException e) {
      files.delete(made, false);
      return false;
    } catch (org.apache.hadoop.fs.UnsupportedFileSystemException e) {
      return files.rename(made, place);
    }
  }
}
