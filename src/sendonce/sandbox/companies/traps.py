"""What stands on sites of companies, looks like an address of theirs, and is none."""

from __future__ import annotations

import random

TRAPS = (
    '<img src="/img/logo@2x.png" srcset="/img/logo@3x.png 3x" alt="Логотип">',
    '<script src="https://cdn.jsdelivr.net/npm/swiper@11/swiper-bundle.min.js"></script>',
    '<script>Sentry.init({dsn:"https://0f1e2d3c4b5a69788796a5b4c3d2e1f0@o77.ingest.sentry.io/42"})</script>',
    '<input type="email" name="email" placeholder="ivan@mail.ru">',
    "<p>Пример заполнения: name@example.com</p>",
    '<p>Разработка сайта — <a href="mailto:hello@web-studio-master.ru">студия «Мастер»</a></p>',
    "<footer>Создание и продвижение сайтов: info@seo-raskrutka-kzn.ru</footer>",
    '<a href="https://www.youtube.com/@zavod.ru">Наш канал youtube.com/@zavod.ru</a>',
    "<p>Мы в Telegram: @nasos_official.ru</p>",
    "<!-- вёрстка: coder@freelance-verstka.ru -->",
    '<meta name="author" content="theme@author-themes.com">',
    '<a style="display:none" href="mailto:honeypot@spamtrap-catcher.ru">не пишите сюда</a>',
    "<p>Письма с адреса noreply@mailer.ru отправляет робот</p>",
    '<a href="https://maps.google.com/maps/@55.79,49.12,17z">Схема проезда</a>',
    "<code>git clone git@github.com:zavod/site.git</code>",
    '<script>/* widget (c) support@jivosite.com */ var w = {id: "a@b"};</script>',
)


def some_traps(dice: random.Random) -> str:
    return "\n".join(dice.sample(TRAPS, dice.randint(1, 5)))
