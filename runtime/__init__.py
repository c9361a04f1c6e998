"""The runtime: messages, channels, nodes and the executors that carry messages between them."""
