"""Settings of door B, which is being built: they are read and checked, and nothing uses them yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from pathlib import Path

from sendonce.domain.prospecting.nights import Hours
from sendonce.settings import kinds
from sendonce.settings.kinds import secret, setting


# ruff: noqa: RUF009 - setting() and secret() make dataclass fields
# fmt: off
@dataclass(frozen=True, kw_only=True, repr=False)
class ProspectingSettings:
    # Searches
    yandex_cloud_folder_id: str = setting("searching", kinds.text, "",
        "console.yandex.cloud: the folder's page, Identifier.", "b1g0123456789abcdefg")
    yandex_cloud_api_key: str = secret("searching",
        "console.yandex.cloud: Service accounts, Create API key, scope yc.search-api.execute.")
    yandex_cloud_iam_token: str = secret("searching",
        "A token for half a day instead of a key: yc iam create-token.")
    yandex_cloud_sa_key_file: Path | None = setting("searching", kinds.path, None,
        "A service account's authorized key: yc iam key create --output key.json.", "key.json")
    yandex_cloud_sa_key_json: str = secret("searching",
        "The content of that file, where there is no disk to put it on.", kinds.json_object)
    yandex_search_url: str = setting("searching", kinds.url, "https://searchapi.api.cloud.yandex.net",
        "Where the Search API is; a stand-in prints its own address.")
    yandex_operation_url: str = setting("searching", kinds.url, "https://operation.api.cloud.yandex.net",
        "Where results of deferred searches are; a stand-in prints its own address.")
    yandex_iam_url: str = setting("searching", kinds.url, "https://iam.api.cloud.yandex.net",
        "Where IAM tokens are made; a stand-in prints its own address.")
    search_window: Hours = setting("searching", kinds.night, Hours(time(0), time(7, 59)),
        "When searches are submitted, by the clock of APP_TIMEZONE; their answers are fetched at all hours. "
        "Yandex's night, when a search costs less, is 00:00-07:59 in Moscow. 00:00-23:59 is always.")
    search_price: float = setting("searching", kinds.number(0), 25.41,
        "What a thousand searches cost in roubles. aistudio.yandex.ru: Search API, pricing, deferred.")
    search_monthly_budget: float = setting("searching", kinds.number(0), 500.0,
        "Roubles that the searches of a month may cost; 0 is no limit.")
    search_first_poll_seconds: float = setting("searching", kinds.seconds(zero=True), 300.0,
        "How long after a search its answer is first asked for. Yandex takes five minutes at the least; "
        "shorter only against the sandbox.")
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
