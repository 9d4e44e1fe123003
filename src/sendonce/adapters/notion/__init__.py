"""Notion: letters are read from it, and what becomes of them is told there.

    wire          one HTTP exchange, bounded in time and size
    pace          how often Notion may be asked
    client        the verbs of the API, with our own policy of retries
    answers       what Notion says when it says no, in the words of ``sendonce.errors``
    names         what the columns of our two tables are called
    values        property values, both ways
    tables        databases, data sources and their columns
    pages         a letter: its properties and the tree of its blocks
    words         what we say there, in Russian and in English
    reports       the status of a letter and the rows of errors: how they are written
    error_rows    which rows of errors there should be
    reporter      keeps both tables in step with the ledger
    setup         makes or checks the two tables
    webhooks      what Notion posts to us: events and presses of a button
    handshake     the token of a new webhook, and when the webhook was last heard
    inbox         the same, read into what pages ask for
    letters       a page as a letter, with copies of its images
    blocks        Notion's blocks as ours
    text          the words in them

The API version is 2026-03-11: since 2025-09-03 a database is a container of data sources, and rows belong
to a data source.
"""
