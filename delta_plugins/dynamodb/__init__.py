"""Safe commits on S3 through a DynamoDB table, as Spark's S3DynamoDBLogStore makes them.

The entry point of the group ``delta_core.committers`` for the schemes ``s3`` and ``s3a``:
`delta_plugins.dynamodb.committer`.
"""
