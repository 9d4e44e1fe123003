"""What comes back into the sending mailbox, and what it means."""
