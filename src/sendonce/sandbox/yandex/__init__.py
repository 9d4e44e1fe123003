"""A Yandex Cloud with the deferred Search API, on this machine.

service   who may ask, how often, and for what; the operations
iam       tokens for a service account's signed JWT
serp      the XML of an answer
sites     what there is to find
faults    what shall go wrong
control   /sandbox/yandex: look inside, inject faults
"""
