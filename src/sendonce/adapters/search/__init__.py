"""Search providers, a file each with what only it needs beside it."""
