"""What each block of Notion becomes, as files: read them to see, and compare to notice a change."""
