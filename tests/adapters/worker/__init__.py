"""Worker processes as they are started by users, against the sandbox: the rules that need a real process."""
