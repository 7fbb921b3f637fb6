"""Tables in and out: files, frames, columns, cells."""
