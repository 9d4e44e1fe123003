"""A Notion on loopback: pages, blocks, databases and data sources, in memory and in ``notion.json``.

    refusals    what Notion answers when it says no
    workspace   everything that is in it, and the file it is kept in
    rich_text   texts as Notion gives them back
    properties  columns and the values in them
    objects     pages, blocks, databases as the API shows them
    queries     filters, sorts and pages of a hundred
    contents    what requests do
    files       links to files, which die after a while
    faults      what shall go wrong
    service     the door: who may ask, how often, and for what
    hooks       the button in a page, and integration webhooks
    control     /sandbox/notion: look inside, press the button, inject faults
    seeds       what a new workspace begins with

It follows API version 2026-03-11 and takes 2025-09-03, which the official clients still ask for.
"""
