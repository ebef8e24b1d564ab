"""One file for each kind of figure: ``draw(numbers, order)`` returns a matplotlib figure."""
