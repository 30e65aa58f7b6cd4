"""An adversary between the product and both servers: in one process over a world, or as a proxy before real servers."""
