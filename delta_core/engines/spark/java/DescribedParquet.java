/**
 * Spark's Parquet source, whose struct _metadata has further fields: those of a table's features.
 */
public class DescribedParquet extends org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat {
  private final StructType more;
  public DescribedParquet(StructType more) { this.more = more; }
  public scala.collection.immutable.Seq metadataSchemaFields() {
    return (scala.collection.immutable.Seq) super.metadataSchemaFields().$plus$plus(TableFiles.seq(Arrays.asList(more.fields())));
  }
}
