"""smtplib and email.message in a loop on one connection: what most scripts do.

python smtplib_loop.py PORT COUNT LETTER.json
"""

from __future__ import annotations

import json
import smtplib
import sys
import time

from common import build, read_letter

port, count, letter = int(sys.argv[1]), int(sys.argv[2]), read_letter(sys.argv[3])
with smtplib.SMTP("127.0.0.1", port) as server:
    began = time.perf_counter()
    for number in range(count):
        server.send_message(build(letter, number))
    seconds = time.perf_counter() - began
print(json.dumps({"sent": count, "seconds": seconds}))
