"""What travels: the user's code and values as pickles, the environment and packages they need."""
