"""The only place that knows Spark: session, reading, checking, ordering, handing over, writing.

The modules in the order in which data pass: `session` (and `java`), `ingest`, `check`, `handoff`, `collect`.
Nothing is imported here, so that `spark_glue.java` works, and is fast, where Spark is not needed.
"""
