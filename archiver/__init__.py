"""The archive: raw copies of transcripts, their exchanges, and documents, with secrets redacted."""
