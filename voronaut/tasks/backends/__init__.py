"""One file per simulator, each a `VectorTask`; `factory.make` chooses among them."""
