"""Puts the sandbox together and serves it until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sendonce.sandbox.acceptance import Acceptance, AcceptanceLog, acceptance_by_smtp
from sendonce.sandbox.companies import CompanyWeb
from sendonce.sandbox.control import Control, answer_faults
from sendonce.sandbox.courier import Courier
from sendonce.sandbox.faults import Dice, FaultPlan
from sendonce.sandbox.http_server import HttpServer, Reply, Request, json_reply
from sendonce.sandbox.llm import CONTROL as LLM_CONTROL
from sendonce.sandbox.llm import PATHS as LLM
from sendonce.sandbox.llm import LanguageModel
from sendonce.sandbox.mailbox import Mailbox
from sendonce.sandbox.notion.control import PREFIX as NOTION_CONTROL
from sendonce.sandbox.notion.control import NotionControl
from sendonce.sandbox.notion.files import PREFIX as NOTION_FILES
from sendonce.sandbox.notion.service import Notion, NotionSettings
from sendonce.sandbox.progress import Progress
from sendonce.sandbox.refusals import ServiceRefusal
from sendonce.sandbox.s3 import PREFIX as S3_PREFIX
from sendonce.sandbox.s3 import S3
from sendonce.sandbox.ses import Ses
from sendonce.sandbox.settings import SandboxAddresses, SandboxSettings
from sendonce.sandbox.signature import check_signature
from sendonce.sandbox.sns import SigningKey, Subscription, Topic, answer_sns
from sendonce.sandbox.state import open_state
from sendonce.sandbox.yandex.control import PREFIX as YANDEX_CONTROL
from sendonce.sandbox.yandex.control import YandexControl
from sendonce.sandbox.yandex.service import Yandex, YandexSettings


async def run_sandbox(settings: SandboxSettings, announce: Callable[[SandboxAddresses], None]) -> None:
    """Serve until cancelled. ``announce`` is called once, when requests can be made.

    Raises OSError when the port is taken or the log of acceptances can no longer be written, Refused
    when another sandbox serves the same directory.
    """
    settings.directory.mkdir(parents=True, exist_ok=True)
    world = World(replace(settings, directory=settings.directory.resolve()))
    try:
        announce(await world.open())
        await world.log.failure
    finally:
        await world.close()


async def serve_until_signal(settings: SandboxSettings, announce: Callable[[SandboxAddresses], None]) -> None:
    """The same until SIGTERM or SIGINT, which end it in good order."""
    world = asyncio.ensure_future(run_sandbox(settings, announce))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, world.cancel)
    await asyncio.wait([world])
    if not world.cancelled():
        world.result()


class World:
    """Everything that a running sandbox consists of."""

    def __init__(self, settings: SandboxSettings) -> None:
        state = open_state(settings.directory, settings.seed)
        plan = FaultPlan()
        plan.change(settings.faults)
        self.settings = settings
        self.progress = Progress()
        self.dice = Dice(plan, state.seed)
        self.signing_key = SigningKey(settings.directory, settings.region)
        self.subscription = Subscription(settings, state)
        self.log = AcceptanceLog(settings.directory, settings.keep_messages, self._publish)
        self.ses = Ses(settings, self.log, self.dice, self.now)
        topic = Topic(settings, self.signing_key)
        self.courier = Courier(settings, topic, self.subscription, self.dice, self.progress, self.now)
        self.s3 = S3()
        self.notion = Notion(_notion_settings(settings, state.seed))
        self.llm = LanguageModel(settings.llm_key, settings.llm_misbehaves, state.seed)
        self.companies = CompanyWeb(settings.companies, state.seed)
        self.mailbox = Mailbox(settings.from_email, note=self._note_mailed)
        self.yandex = Yandex(_yandex_settings(settings, state.seed), self.companies.results(), self.now)
        self._control = Control(self)
        self._notion_control = NotionControl(self.notion)
        self._yandex_control = YandexControl(self.yandex)
        self._server = HttpServer(self._answer, self.now)
        self.second = SecondRegion(self) if settings.second_region else None
        self.addresses: SandboxAddresses

    def now(self) -> float:
        return time.time() + self.settings.clock_offset

    async def open(self) -> SandboxAddresses:
        for acceptance in self.log.read():
            self.ses.remember(acceptance)
        port = await self._server.listen(self.settings.port)
        if self.settings.mailbox:
            await self.mailbox.open()
        endpoint = f"http://127.0.0.1:{port}"
        second = await self.second.open() if self.second is not None else {}
        self.notion.files.base_url = endpoint
        self.companies.write_truth(self.settings.directory)
        self.addresses = SandboxAddresses(
            endpoint=endpoint,
            directory=self.settings.directory,
            region=self.settings.region,
            access_key_id=self.settings.access_key_id,
            secret_access_key=self.settings.secret_access_key,
            from_email=self.settings.from_email,
            configuration_set=next(iter(self.settings.configuration_sets), ""),
            topic_arn=self.settings.topic_arn,
            seed=self.dice.seed,
            others={
                **self.notion.environment(endpoint),
                **self.llm.environment(endpoint),
                **self.companies.environment(endpoint),
                **(self.mailbox.environment() if self.settings.mailbox else {}),
                **self.yandex.environment(endpoint),
                **second,
            },
        )
        self.courier.start()
        if url := self.settings.events_url or self.subscription.url:
            self.subscribe(url)
        return self.addresses

    async def close(self) -> None:
        await self._server.close()
        if self.second is not None:
            await self.second.close()
        await self.mailbox.close()
        await self.courier.close()
        await self.log.close()

    def subscribe(self, url: str) -> None:
        """Send all that is not yet told, and all that comes, to this address once it is confirmed."""
        self.subscription.request(url)
        self.courier.recover(self.log.read())
        if self.settings.subscribe and not self.subscription.confirmed:
            self.courier.request_confirmation()
        self.courier.subscription_changed()

    async def _note_mailed(self, raw: bytes, recipient: str) -> None:
        taken = acceptance_by_smtp(raw, self.settings.from_email, recipient, self.now())
        await self.log.append(taken, raw)

    def _publish(self, acceptances: list[Acceptance]) -> None:
        for acceptance in acceptances:
            self.ses.tally.count(acceptance)
        self.courier.publish(acceptances)
        self.progress.changed()

    async def _answer(self, request: Request) -> Reply:
        if self.companies.knows(request):
            return await self.companies.answer(request)
        if self.yandex.serves(request.path):
            return await self.yandex.answer(request)
        if request.path.startswith("/v2/email/"):
            return await self.ses.answer(request)
        if request.path.startswith(f"{S3_PREFIX}/"):
            return self._answer_s3(request)
        if request.path in LLM:
            return await self.llm.answer(request)
        if request.path.startswith("/v1/"):
            return await self.notion.answer(request)
        if request.path.startswith(NOTION_FILES):
            return self.notion.files.answer(request)
        if request.path.startswith(NOTION_CONTROL):
            return await self._notion_control.answer(request)
        if request.path.startswith(LLM_CONTROL):
            return await self.llm.control(request)
        if request.path.startswith(YANDEX_CONTROL):
            return self._yandex_control.answer(request)
        if request.path.startswith("/sandbox"):
            return await self._control.answer(request)
        if request.path == "/" and request.method == "POST":
            return self._answer_sns(request)
        if request.path == self.signing_key.path:
            return Reply(body=self.signing_key.certificate, content_type="application/x-pem-file")
        return json_reply({"error": f"Nothing at {request.path}; GET /sandbox/ tells what there is."}, 404)

    def _answer_s3(self, request: Request) -> Reply:
        try:
            check_signature(request, "s3", self.settings, self.now())
            return self.s3.answer(request)
        except ServiceRefusal as refusal:
            return refusal.as_s3_xml()

    def _answer_sns(self, request: Request) -> Reply:
        try:
            reply = answer_sns(request, self.subscription, self.settings, self.now())
        except ServiceRefusal as refusal:
            return refusal.as_xml()
        self.courier.subscription_changed()
        return reply

    def stats(self) -> dict[str, Any]:
        tally, courier = self.ses.tally, self.courier
        return {
            "seed": self.dice.seed,
            "accepted": tally.accepted,
            "recipients": tally.recipients,
            "duplicates": tally.duplicates,
            "refused": dict(tally.refused),
            "faults": dict(self.dice.injected),
            "events": {
                "url": self.subscription.url,
                "confirmed": self.subscription.confirmed,
                "paused": courier.paused,
                "sent": courier.sent,
                "pending": courier.pending,
                "withheld": len(courier.withheld),
                "dropped": courier.dropped,
                "answers": dict(courier.answers),
            },
        }


class SecondRegion:
    """SES in another region: its own address, faults, rate and quota; the same account, log and topic."""

    def __init__(self, world: World) -> None:
        settings = replace(world.settings, region=world.settings.second_region)
        self._settings = settings
        self._dice = Dice(FaultPlan(), world.dice.seed)
        self._ses = Ses(settings, world.log, self._dice, world.now, mark="0102")
        self._server = HttpServer(self._answer, world.now)

    async def open(self) -> dict[str, str]:
        """Serve; the variables that lead here."""
        port = await self._server.listen(self._settings.second_port)
        return {
            "SES_SECOND_REGION": self._settings.region,
            "SES_SECOND_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        }

    async def close(self) -> None:
        await self._server.close()

    async def _answer(self, request: Request) -> Reply:
        if request.path.startswith("/v2/email/"):
            return await self._ses.answer(request)
        if request.path == "/sandbox/faults":
            return answer_faults(request, self._dice)
        return json_reply({"error": f"Nothing at {request.path}: here are SES and /sandbox/faults."}, 404)


def _notion_settings(settings: SandboxSettings, seed: int) -> NotionSettings:
    return NotionSettings(
        directory=settings.directory,
        token=settings.notion_token,
        requests=settings.notion_requests,
        window=settings.notion_window,
        file_seconds=settings.notion_file_seconds,
        tables=settings.notion_tables,
        seed=seed,
    )


def _yandex_settings(settings: SandboxSettings, seed: int) -> YandexSettings:
    return YandexSettings(
        directory=settings.directory,
        api_key=settings.yandex_api_key,
        folder_id=settings.yandex_folder_id,
        pending_seconds=settings.yandex_pending_seconds,
        rate=settings.yandex_rate,
        token_seconds=settings.yandex_token_seconds,
        seed=seed,
    )
