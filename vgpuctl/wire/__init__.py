"""What the clients of both servers share: bounds on replies, and threads that follow a stream."""
