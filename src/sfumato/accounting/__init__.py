"""What was released, what it cost, how costs add up and how a budget is spread over time."""
