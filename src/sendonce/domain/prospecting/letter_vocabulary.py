"""The words that a letter may use beside those of its brief: what any polite business letter is made of.

A model that obeys a page can then say nothing that its brief does not. So nothing may stand here that judges,
promises, counts, denies, asks for money, or sends the reader somewhere else. Of verbs only the forms that
such a letter needs: "we offer" is fine, "you asked us" would be a claim.
"""

from __future__ import annotations

from sendonce.domain.prospecting.letter_words import plain, stem

# Every case and number of these.
_RUSSIAN_STEMS = """
    компания предприятие завод организация фирма производство производитель изготовитель продукция клиент
    партнер заказчик покупатель поставщик потребитель коллега команда специалист руководитель сотрудник
    отдел служба направление деятельность область сфера отрасль рынок регион город сайт страница
    специализация профиль предложение услуга решение продукт товар материал оборудование вариант пример
    образец каталог прайс прайс-лист презентация запрос расчет перечень список детали подробности информация
    сведения вопрос задача цель работа проект процесс этап сотрудничество партнерство взаимодействие встреча
    звонок разговор беседа диалог знакомство письмо сообщение ответ обратный связь время минута час день
    неделя месяц начало срок возможность выгода польза преимущество интерес потребность необходимость
    условие требование особенность стоимость цена внимание мнение роль часть место случай тема поставка
    закупка заказ снабжение удобный полезный интересный подробный короткий краткий актуальный подходящий
    возможный совместный текущий будущий дополнительный основной общий конкретный разный различный нужный
    необходимый важный такой весь собственный похожий небольшой понятный деловой технический коммерческий
    ваш наш данный который свой этот тот любой каждый
"""
# Only these forms.
_RUSSIAN_FORMS = """
    и а но или либо также тоже ещё если чтобы когда как где что чем это кто кого кому кем чего чему в во на
    с со к ко о об обо от до для по при за из у над под через между около про я мы вы он она они оно меня
    мне нас нам нами вас вам вами их им ему ей его её него неё них ним ней себя себе бы ли же то так там тут
    здесь уже сейчас сегодня обычно например именно прежде всего поэтому потому поскольку ведь значит причём
    помимо благодаря ради вот лишь только просто скорее возможно вероятно есть быть будет будут будем будете
    буду является являются можно можем можете может могут сможем сможете смогут могли могу мог могла готов
    готова готовы рад рада рады нужно нужен нужна нужны важно важна важен важны здравствуйте добрый доброе
    день утро вечер уважением уважаемые уважаемый уважаемая господа спасибо благодарю благодарим пожалуйста
    приветствую надеюсь надеемся предлагаем предлагаю предлагает предложить предложим помогаем помогает
    помогают поможем помочь помогут поможет делаем делаете делает делают делать сделать занимаемся
    занимаетесь занимается занимаются занимаюсь работаем работаете работает работают работать
    специализируется специализируемся специализируетесь производим производите производит производят
    выпускаем выпускаете выпускает поставляем поставляете поставляет изготавливаем изготавливаете
    изготавливает создаём создаете отгружаем пишу пишем написать обращаюсь обращаемся обратиться обратили
    знаем знаю видим вижу увидели увидел увидела узнали нашли нашёл нашла заметили заметил заметила изучили
    посмотрели ознакомились ознакомиться хотим хотел хотела хотели хотелось хочу хотите понимаем понимаю
    думаем думаю полагаем считаем расскажем рассказать расскажу рассказываем ответить ответьте ответим
    отвечу ответите отвечаем обсудить обсудим покажем показать пришлём пришлю прислать направим направить
    отправим отправлю отправить подготовим подготовлю подготовить подобрать подберём подойдёт подойдут
    подходит подходят пригодится пригодятся предоставим предоставить предоставляем познакомиться
    представляем представить представляю связаться свяжемся созвониться созвонимся встретиться поговорить
    пообщаться уделите удобно удобнее удобен интересно интересен интересна интересны полезно полезны полезен
    полезна актуально актуален актуальна актуальны кратко коротко подробно подробнее подскажите дайте знать
    сообщите напишите посмотреть узнать получить получаете получает получают получите использовать
    использует используют используете применяют применяется решить решать решает решают даёт дают дать
    позволяет позволяют позволит включает включают состоит входит стоит касается относится рассмотреть
    рассматриваете оценить выбрать начать становится стать давайте начнём более больше раз несколько много
    часто один одна одно одной заранее далее ниже выше после перед вместе среди исходя насколько поводу
    связи рамках счёт образом виду этой этого этом этих этим эти эта этому те тех тем всех всё все вся кроме
    того радостью удовольствием ближайшее ближайшие количество
"""
_ENGLISH_STEMS = """
    company search business plant factory firm organisation organization manufacturer maker producer supplier
    production product service solution offer customer client buyer partner colleague team person people
    specialist department field area industry market region city site website page option example sample
    catalogue catalog list brochure detail information question task goal work project process step
    cooperation partnership meeting call conversation talk chat letter email message reply answer time
    minute hour day week month opportunity benefit advantage interest need requirement condition price cost
    material equipment use case way role topic range order delivery purchase line reason idea
"""
_ENGLISH_FORMS = """
    a an the and or but if so as that this these those which who whom whose what when where how why whether
    while of in on at to for with from by about into over under through between within per via than then
    like far i we you he she it they me us them him her my our your yours ours its their his myself yourself
    ourselves is are be am being been was were can could may might would will shall should do does have has
    having let hello hi dear sir madam morning afternoon regards sincerely thanks thank kind wishes yours
    faithfully offer offers offering help helps helping make makes making work works working provide
    provides providing manufacture manufactures produce produces supply supplies supplying run runs build
    builds deliver delivers sell sells specialise specialises specialize specializes write writing reach
    reaching contact see seeing saw found find know learn noticed came across understand like want glad
    happy pleased delighted ready hope wish look looking forward hear open think believe tell show send
    share explain discuss talk speak meet arrange prepare answer reply call chat schedule explore fit fits
    suit suits include includes allow allows enable enables give gives get getting take takes come comes
    bring brings mean means start starts begin support supports consider choose compare point points
    interested interesting useful relevant convenient suitable possible helpful short brief briefly quick
    important right main current different similar own simply few please just also more some any all each
    every several other one here there now today soon next often usually because since after before together
    such both well too even details note below above out up down
"""

_STEMS = {
    "ru": frozenset(map(stem, _RUSSIAN_STEMS.split())),
    "en": frozenset(map(stem, _ENGLISH_STEMS.split())),
}
_FORMS = {
    "ru": frozenset(map(plain, _RUSSIAN_FORMS.split())),
    "en": frozenset(map(plain, _ENGLISH_FORMS.split())),
}

_DENYING = """
    не нет ни нельзя никогда никто ничего без
    not no never none nothing nobody without cannot can't don't won't isn't aren't doesn't
"""
DENIALS = frozenset(_DENYING.split())
"""They turn a sentence into its opposite: each may stand only before the word that it denies in the brief."""


def is_common(word: str, language: str) -> bool:
    return plain(word) in _FORMS[language] or stem(word) in _STEMS[language]
