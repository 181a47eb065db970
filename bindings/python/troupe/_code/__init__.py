"""Code that travels: pickles of the user's functions and values, and the environment and packages
they need."""
