"""Small things that every room may use: files written whole, tables, figures, words about the machine."""
