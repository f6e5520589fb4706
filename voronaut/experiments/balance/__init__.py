"""Which balance survives a moving agent: rules of online k-means, judged on fixed laws and on moving streams."""
