"""Door C: campaigns of several letters, for many clients, from pools of senders."""
