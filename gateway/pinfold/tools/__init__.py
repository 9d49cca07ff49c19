"""One module for each tool: arguments to result, by a backend. `registry` lists them."""
