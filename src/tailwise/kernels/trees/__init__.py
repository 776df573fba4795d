"""Trees over labels: clustering them, storing the classifiers of their edges, searching them."""
