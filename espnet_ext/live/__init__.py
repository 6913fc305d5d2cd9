"""Live translation over a socket: the server, its protocol and its page."""
