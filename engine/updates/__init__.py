"""New versions of Shoal: the signed list that names them, and fetching what it names."""
