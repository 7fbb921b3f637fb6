"""Bridges: releases between two sides of somebody else's broker, durable before they leave."""
