"""The CarFlag grid worlds and recurrent A2C on them."""
