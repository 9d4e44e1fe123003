"""The sandbox: a small honest world on loopback that stands in for Amazon SES and SNS, Notion, Yandex
and a language model.

It takes letters as SES does, refuses what SES refuses, writes down each acceptance before it answers,
and tells about the letters by signed SNS notifications. On request it misbehaves: it loses replies,
throttles, repeats and withholds events. Nothing ever leaves the machine.

    http_server   bytes to requests, replies to bytes (also broken ones)
    signature     is the request signed with our key, and in time?
    letters       what a SendEmail request asks for
    limits        rate and daily quota
    acceptance    the durable log: the only judge of what was sent
    faults        what shall go wrong, and how often
    ses           the SES v2 operations
    events        what becomes of a letter, told as SES tells it
    sns           envelopes, signatures, the certificate, the subscription
    courier       carries the notifications to the subscriber
    webhook       one keep-alive connection to the subscriber
    yandex        searches that are answered later
    notion        pages, tables and blocks as Notion keeps them
    companies     sites of companies that never were, with contacts that are known
    llm           a language model that sometimes misbehaves
    control       /sandbox/: look inside, inject faults
    world         puts it together and serves
"""

from sendonce.sandbox.settings import SandboxAddresses, SandboxSettings
from sendonce.sandbox.world import run_sandbox, serve_until_signal

__all__ = ["SandboxAddresses", "SandboxSettings", "run_sandbox", "serve_until_signal"]
