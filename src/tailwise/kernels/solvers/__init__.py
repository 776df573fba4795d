"""Linear problems, one a label or one a tree node: what they are made of and how they are solved."""
