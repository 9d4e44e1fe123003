"""The words that a letter may use beside those of its brief: what any polite business letter is made of.

A model that obeys a page can then say nothing that its brief does not. So nothing may stand here that judges,
promises, counts, denies, asks for money, or sends the reader somewhere else. Of verbs only the forms that
such a letter needs: "we offer" is fine, "you asked us" would be a claim.

Even common words can ask for what nobody ("send us your list of customers"). So they may only stand in
a sentence that says something of the offer; all other sentences are made of the words of courtesy alone.
"""

from __future__ import annotations

from sendonce.domain.prospecting.letter_words import plain, stem

# -- what a sentence about the offer may use beside the words of its brief --

# Every case and number of these.
_RUSSIAN_STEMS = """
    компания предприятие завод организация фирма производство производитель изготовитель продукция команда
    специалист отдел служба направление деятельность область сфера отрасль рынок регион город сайт
    страница специализация профиль предложение услуга решение продукт товар материал оборудование вариант
    пример образец каталог презентация запрос расчет детали подробности вопрос задача цель работа проект
    процесс этап сотрудничество встреча звонок разговор беседа диалог знакомство письмо ответ связь время
    минута час день неделя месяц начало возможность выгода польза преимущество интерес особенность
    внимание часть тема поставка закупка снабжение удобный полезный интересный подробный короткий краткий
    актуальный подходящий возможный совместный текущий будущий дополнительный основной общий конкретный
    разный различный нужный необходимый важный такой собственный похожий небольшой понятный деловой
    технический коммерческий ваш наш данный который свой этот тот любой каждый
"""
# Only these forms.
_RUSSIAN_FORMS = """
    и а но или либо также тоже ещё если чтобы когда как где что чем это кто кого кому кем чего чему в во
    на с со к ко о об обо от до для по при за из у над под через между около про я мы вы он она они оно
    нас вас вам вами их им ему ей его её него неё них ним ней себя себе бы ли же то так там тут здесь
    обычно например именно прежде всего поэтому потому поскольку ведь причём благодаря ради
    вот просто скорее возможно вероятно есть быть будет будут будем будете буду является являются можно
    можем можете может могут сможем сможете смогут могли могу готов готова рад рада рады важно важна
    важен важны здравствуйте добрый доброе день утро вечер уважением уважаемые уважаемый уважаемая
    господа спасибо благодарю благодарим пожалуйста приветствую надеюсь надеемся предлагаем предлагаю
    предлагает предложить предложим помогаем помогает помогают поможем помочь помогут поможет делаем
    делаете делает делают делать сделать занимаемся занимаетесь занимается занимаются занимаюсь работаем
    работаете работает работать специализируется специализируемся специализируетесь производим
    производите производит производят выпускаем выпускаете выпускает поставляем поставляете поставляет
    изготавливаем изготавливаете изготавливает создаём создаете отгружаем пишу пишем написать обращаюсь
    обращаемся обратили видим вижу нашли нашёл нашла заметили заметил заметила
    ознакомиться хотим хотел хотела хотели хотелось хочу хотите понимаем
    понимаю думаем думаю полагаем считаем расскажем рассказать расскажу рассказываем ответить ответьте
    ответим отвечу ответите отвечаем обсудить обсудим покажем показать пришлём пришлю прислать направим
    направить отправим отправлю отправить подготовим подготовлю подготовить подобрать подберём подойдёт
    подойдут подходит подходят пригодится пригодятся предоставим предоставить предоставляем
    познакомиться представляем представить представляю связаться свяжемся созвониться созвонимся
    встретиться поговорить пообщаться удобно удобнее удобен интересно интересен интересна интересны
    полезно полезны полезен полезна актуально актуален актуальна актуальны кратко коротко подробно
    подробнее посмотреть узнать получает получают использовать использует используют используете
    применяют применяется решить решать решает решают даёт дают дать позволяет позволяют позволит
    включает включают состоит входит стоит касается относится начать начнём раз несколько
    заранее далее после перед вместе среди исходя насколько поводу связи рамках счёт образом виду
    этой этого этом этих этим эти эта этому те тех тем того радостью удовольствием ближайшее
    ближайшие количество служат служит начинается начинаются получат занимает занимают отвечает
    отвечают признателен признательна признательны берём берем ведём входят получаете получит
    значит только знаем
"""
_ENGLISH_STEMS = """
    company search business plant factory firm organisation organization manufacturer maker producer
    production product service solution offer team specialist department field area industry market region
    city site website page option example sample catalogue catalog brochure detail information question
    task goal work project process step cooperation meeting call conversation talk chat letter email reply
    answer time minute hour day week month opportunity benefit advantage interest material equipment way
    topic range delivery purchase line idea
"""
_ENGLISH_FORMS = """
    a an the and or but if so as that this these those which who whom whose what when where how why
    whether while of in on at to for with from by about into over under through between within per via
    than then like i we you he she it they my our your yours ours its their his myself yourself
    ourselves is are be am being can could may might would will do does let
    hello hi dear sir madam morning afternoon regards sincerely thanks thank kind wishes faithfully
    offer offers offering help helps helping make makes making work works working provide provides
    providing manufacture manufactures produce produces supply supplies supplying run runs build builds
    deliver delivers specialise specialises specialize specializes write writing reach reaching contact
    see seeing found find learn noticed understand glad happy pleased delighted ready
    hope wish look looking forward hear open think believe show explain discuss talk speak meet arrange
    prepare answer reply chat schedule explore fit fits suit suits include includes allow allows enable
    enables bring brings mean means start starts begin support supports consider choose compare point
    points interested interesting useful relevant convenient suitable possible helpful short brief
    briefly quick important main current different similar own few please just also some any each
    several here there now next often usually because since after before together such both well too
    even details note below above out up first thought single job part only know
"""

# -- what all other sentences are made of: a greeting, thanks, a question, a next step --

_RUSSIAN_COURTESY = """
    здравствуйте добрый доброе день утро вечер уважением уважаемые уважаемый уважаемая господа коллеги
    спасибо благодарю благодарим пожалуйста приветствую надеюсь надеемся заранее внимание время ответ
    ответа ответу и а но или если чтобы когда как что это этот этого этой этом эту эти кто кем кому кого
    чем с со к в во на о об от до для по из у за ли бы же то так я мы вы вам вас вами наш наша наше наши
    нашем нашего нашей нашу наших вашей вашем вашего ваш ваши ваше ваших вашими вашим вашу компании
    компания команде команды предприятии отделе буду будем будет будут есть быть можно
    можем можете могу может могли хотим хотел хотела хотели хотелось хочу хотите готов готова готовы рад
    рада рады признателен признательна признательны интересно интересен интересна интересны интересует
    удобно удобнее удобен удобное актуально актуален актуальна полезно полезны полезен кратко коротко
    подробно подробнее подробности подробностей детали деталей обсудить обсудим поговорить пообщаться
    созвониться созвонимся встретиться познакомиться связаться свяжемся ответить ответьте ответим отвечу
    ответите отвечаем рассказать расскажем расскажу показать покажем прислать пришлём пришлю отправить
    отправим отправлю направить направим подготовить подготовим подготовлю предложить узнать посмотреть
    занимается занимаются отвечает подскажите давайте вопрос вопросы вопросов вопросу вопросом вопросе
    предложение предложения предложением сотрудничество сотрудничества сотрудничестве каталог каталога
    презентацию расчёт примеры образцы информацию письмо письма звонок звонка встречу встреча разговор
    неделе неделю ближайшее ближайшие следующей следующую какой какая минут дни удовольствием радостью
    больше ещё также сайте сайт вашему специалистов специалистами пишем пишу поводу задачу задачи задаче
    они подойдут подойдёт предприятию предлагаем предлагаю подробную подробное коммерческое нашли
    обращаюсь обращаемся работаем даёт продукции подходит подходят
"""
_ENGLISH_COURTESY = """
    hello hi dear sir madam morning afternoon evening regards sincerely thanks thank kind wishes yours
    faithfully a an the and or but if so as that this these which who what when where how whether while of
    in on at to for with from by about more some any other i we you it our your is are be am can could may
    might would will do does have let like glad happy pleased delighted hope look looking forward
    hear open interested interesting useful relevant convenient helpful possible worth interest discuss
    talk speak meet arrange schedule answer reply explain show send tell share explore learn see know
    contact question questions details detail information idea offer cooperation call conversation chat
    meeting letter email catalogue samples examples short brief quick next week weeks time minutes day
    days please just also simply further team company business point person right suits suit works fit
    fits writing write task only first thought gives field work
"""
# What a sentence about the company alone may say.
_ABOUT_A_COMPANY = """
    производит производят выпускает выпускают изготавливает занимается занимаются поэтому потому
    поскольку может предложить предложение видим знаем нашли заметили рассказать полезно также
    свои своей своих запросу makes make produces produce builds build manufactures manufacture supplies
    supply does see noticed found because since where know ваша вашей вашу ваше вашем вашего ваш
    компания компании компанию предприятие предприятии завод что мы вы вас вам в во на по из у и а но
    для с это как г пишем пишу обращаюсь поводу насколько направление работы работает области сфере
    написать обратили внимание их её его наше наши the a an your our you we i it that this is are
    in of for and to by with as about who company business writing search field work like would tell
    offer хотели бы обсудить подходит ли
"""

PHRASES = (
    *("дайте знать", "дайте нам знать", "напишите нам", "ответьте нам"),
    *("был бы", "была бы", "были бы", "решили написать", "кроме того,"),
    *("let me know", "let us know", "right person", "point me", "as far as", "shall we", "we shall"),
)
"""Fixed turns whose words alone would say too much."""

ONLY_AS_WRITTEN = frozenset(["warrant", "warrants", "contract", "contracts", "discount", "discounts"])
"""They promise or threaten so much that a word of the brief which is merely like them allows none of them."""

_PRICE_WORDS = frozenset(map(stem, ("цена", "стоимость", "стоит", "price", "cost", "costs")))

_STEMS = {
    "ru": frozenset(map(stem, _RUSSIAN_STEMS.split())),
    "en": frozenset(map(stem, _ENGLISH_STEMS.split())),
}
_FORMS = {
    "ru": frozenset(map(plain, _RUSSIAN_FORMS.split())),
    "en": frozenset(map(plain, _ENGLISH_FORMS.split())),
}

CURRENCIES = {"руб": "₽", "рубл": "₽", "р": "₽", "rub": "₽", "долл": "$", "доллар": "$", "usd": "$"}
CURRENCIES |= {
    "dollar": "$",
    "евро": "€",
    "евр": "€",
    "eur": "€",
    "euro": "€",
    "процент": "%",
    "percent": "%",
}
"""How a stem names what a number counts: 30 percent is 30 %."""

_DENYING = """
    не нет ни нельзя никогда никто ничего без кроме вместо except instead unless
    not no never none nothing nobody without cannot can't don't won't isn't aren't doesn't
"""
DENIALS = frozenset(_DENYING.split())
"""They turn a sentence into its opposite: each may stand only before the word that it denies in the brief."""


_OF_COMPANIES = frozenset(map(plain, _ABOUT_A_COMPANY.split()))
_COURTESY = {
    "ru": frozenset(map(plain, _RUSSIAN_COURTESY.split())),
    "en": frozenset(map(plain, _ENGLISH_COURTESY.split())),
}


def is_common(word: str, language: str) -> bool:
    """Whether any sentence about an offer may use the word."""
    return plain(word) in _FORMS[language] or stem(word) in _STEMS[language]


def is_glue(word: str, language: str) -> bool:
    """Whether the word alone tells nothing: it stands in every letter."""
    return plain(word) in _FORMS[language] or is_courtesy(word, language)


def is_courtesy(word: str, language: str) -> bool:
    """Whether a sentence that says nothing may use it."""
    return plain(word) in _COURTESY[language]


def is_said_of_companies(word: str) -> bool:
    return plain(word) in _OF_COMPANIES


def is_of_prices(word: str) -> bool:
    return stem(word) in _PRICE_WORDS
