"""The service: certified releases behind HTTP and WebSocket, durable before they leave."""
