"""The daemon's HTTP server: health, the status document, metrics. It writes nothing and asks no server."""
