"""boto3's sesv2 client in threads, raw messages ready beforehand, no books kept.

python boto3_threads.py URL COUNT THREADS MESSAGE.eml
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import boto3
from botocore.config import Config

url, count, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
message = Path(sys.argv[4]).read_bytes()
numbers = iter(range(count))
lock = threading.Lock()
# Clients are safe to share between threads, sessions are not (boto3's guide).
config = Config(max_pool_connections=threads, retries={"total_max_attempts": 1})
client = boto3.client(
    "sesv2",
    region_name="eu-central-1",
    endpoint_url=url,
    aws_access_key_id="AKIABENCH",
    aws_secret_access_key="bench",
    config=config,
)


def lane() -> None:
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        client.send_email(
            FromEmailAddress="news@bench.example",
            Destination={"ToAddresses": [f"reader{number:07d}@bench.example"]},
            EmailTags=[{"Name": "job", "Value": str(number)}, {"Name": "attempt", "Value": "1"}],
            Content={"Raw": {"Data": message}},
        )


lanes = [threading.Thread(target=lane) for _ in range(threads)]
began = time.perf_counter()
for thread in lanes:
    thread.start()
for thread in lanes:
    thread.join()
print(json.dumps({"sent": count, "seconds": time.perf_counter() - began}))
