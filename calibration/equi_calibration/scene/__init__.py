"""What clouds show of the cell: table plane and blocks of known size."""
