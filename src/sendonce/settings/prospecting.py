"""Settings of door B, which is being built: they are read and checked, and nothing uses them yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sendonce.settings import kinds
from sendonce.settings.kinds import secret, setting


# ruff: noqa: RUF009 - setting() and secret() make dataclass fields
# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class ProspectingSettings:
    # Prospecting
    yandex_cloud_folder_id: str = setting("prospecting", kinds.text, "",
        "console.yandex.cloud: the folder's page, Identifier.", "b1g0123456789abcdefg")
    yandex_cloud_api_key: str = secret("prospecting",
        "console.yandex.cloud: Service accounts, Create API key, scope yc.search-api.execute.")
    yandex_cloud_iam_token: str = secret("prospecting",
        "A token for half a day instead of a key: yc iam create-token.")
    yandex_cloud_sa_key_file: Path | None = setting("prospecting", kinds.path, None,
        "A service account's authorized key: yc iam key create --output key.json.", "key.json")
    yandex_cloud_sa_key_json: str = secret("prospecting",
        "The content of that file, where there is no disk to put it on.", kinds.json_object)
    yandex_search_url: str = setting("prospecting", kinds.url, "https://searchapi.api.cloud.yandex.net",
        "Where the Search API is; a stand-in prints its own address.")
    yandex_operation_url: str = setting("prospecting", kinds.url, "https://operation.api.cloud.yandex.net",
        "Where results of deferred searches are; a stand-in prints its own address.")
    yandex_iam_url: str = setting("prospecting", kinds.url, "https://iam.api.cloud.yandex.net",
        "Where IAM tokens are made; a stand-in prints its own address.")
    crawl_agent_url: str = setting("crawling", kinds.url, "",
        "A page of yours that tells who visits sites and how to stop it. The crawler names it to every site.",
        "https://example.com/our-crawler")
    crawl_pages: int = setting("crawling", kinds.whole(1, 20), 5,
        "How many pages of a company's site are read at the most.")
    crawl_pause_seconds: float = setting("crawling", kinds.seconds(zero=True), 1.0,
        "The least time between two requests to a site; its robots.txt may ask for more.")
    crawl_visit_seconds: float = setting("crawling", kinds.seconds(zero=False), 60.0,
        "The longest that a visit to a site may take.")
    crawl_concurrency: int = setting("crawling", kinds.whole(1, 500), 20,
        "How many sites are visited at once; each has one connection.")
    web_stand_in: str = setting("crawling", kinds.loopback_url, "",
        "A server on this machine that plays all sites of the web; the sandbox prints its address. Nothing "
        "else is visited then.", "http://127.0.0.1:4581")
    # fmt: on
