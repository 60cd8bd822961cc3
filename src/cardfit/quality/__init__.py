"""What a setting costs the picture: differences, seams, chunk edges and drift between two pieces of footage.

In: files. Out: a `Comparison`. It judges pictures and knows no card.
"""
