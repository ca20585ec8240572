"""What the tables of rules are written with: the shape of a rule, and the parts of speech its patterns share."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from engram.capture.extraction.doubts import OVER, PASSING
from engram.gates.tables import phrases

EXPLICIT = 0.95
"""The person said outright that it is to hold."""
CLEAR = 0.85
PLAIN = 0.7
"""DESIGN §10: from .70 on, implied."""

Rendering = Callable[[re.Match[str]], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A way of saying something that lasts."""

    name: str
    pattern: re.Pattern[str]
    type: str
    """ "fact" where the policy at hand may name a closer one."""
    confidence: float
    render: Rendering
    role: str = "user"
    """Whose turns it is for; "any" for both."""
    despite: frozenset[str] = frozenset()
    """The doubts that do not count against it."""


CHANGED = frozenset((PASSING, OVER))
"""A change names its moment, and the moment is past; what it changed still holds."""


def rule(
    name: str,
    pattern: str,
    type_: str,
    confidence: float,
    render: Rendering,
    *,
    role: str = "user",
    despite: frozenset[str] = frozenset(),
) -> Rule:
    """A rule whose pattern must fit a whole clause, in any case."""
    return Rule(name, re.compile(rf"(?:{pattern})\Z", re.IGNORECASE), type_, confidence, render, role, despite)


def imperatives() -> str:
    """The verbs a command may open with, as a pattern."""
    return "|".join(sorted(phrases("imperatives.txt", "imperative").words - {"mind", "never", "always", "do", "don't"}))


CONTEXT = r"(?P<ctx>(?:(?:in|for|on|at|within) (?:this|our|my|all|every|any|new) [\w /-]{2,30}?,? |when(?:ever)? [\w' -]{3,40}, )?)"
OFTEN = r"(?P<adv>(?:really|strongly|much|generally|usually|always|absolutely|definitely|still|personally|normally|typically|never|only|mostly|also|greatly|even) )?"
# What follows is either not said ("I like it") or a courtesy ("I like your idea").
THING = (
    r"(?P<rest>(?!.*\bwith you$)(?!(?:it|ones?|something|anything|someone|myself|not to|that(?! (?:you|we|the|all|every))|this|these|those|them|him|her|you|your|how|what|where|when|if|the|both|either|neither|one|"
    r"everything|nothing|all|option|to (?:see|know|think|ask|say|hear|talk|thank|start|try|discuss|point|get|be|go|do|make|add|fix|change))\b).{2,200})"
)
ANYTHING = r"(?P<rest>(?!(?:it|that|this|these|those|them|him|her|you|your|one|option|the (?:first|second|last|other|former|latter|same))\b).{2,200})"
PEOPLE = r"(?:wife|husband|partner|girlfriend|boyfriend|son|daughter|kid|child|children|kids|mother|mom|mum|father|dad|sister|brother|boss|manager|team lead|cat|dog|pet|doctor|dentist|assistant|co-?founder)"
ROLE = (
    r"(?:engineer|developer|programmer|designer|manager|teacher|nurse|doctor|student|researcher|analyst|scientist|writer|lawyer|founder|"
    r"consultant|freelancer|contractor|architect|administrator|sysadmin|accountant|professor|journalist|chef|pilot|musician|artist|"
    r"photographer|translator|editor|electrician|carpenter|physicist|biologist|chemist|economist|therapist|psychologist|dentist|pharmacist|"
    r"beginner|native speaker|citizen|parent|father|mother|veteran|gardener|vet|veterinarian|surgeon|midwife|lecturer|tutor|clerk|cashier|waiter|waitress|firefighter|police officer|soldier|butcher|tailor|barber|hairdresser|banker|"
    r"trader|broker|actor|actress|singer|dancer|painter|poet|novelist|historian|mathematician|statistician|linguist|priest|judge|technician|builder|welder|sailor|runner|cyclist|climber|entrepreneur|librarian|paramedic)"
)
NUMBER = r"(?:a|an|one|two|three|four|five|six|\d+)"
I_AM = r"(?:i'm|i am|im) (?:actually |also |originally |currently |still )?"

_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
WEEKDAYS = rf"(?:{WEEKDAY}s|weekends|weekdays|bank holidays|holidays)"
CLOCK = r"(?:\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\.?)?|noon|midnight|(?:six|seven|eight|nine|ten|eleven|twelve|one|two|three|four|five)(?: o'clock| thirty)?)(?: (?:UTC|GMT|CES?T|E[SD]T|P[SD]T|sharp))?"
OFTEN_ENOUGH = (
    rf"(?:on (?:[\w-]+ )?{WEEKDAYS}(?:(?:,| and|, and| or) {WEEKDAYS})*|(?:on |in )?(?:every|each)(?: (?:other|second|third|first|last|single|\d+))? "
    rf"(?:{WEEKDAY}|day|days|morning|evening|afternoon|night|week|weeks|weekend|month|months|quarter|year|sprint|spring|summer|autumn|winter|two \w+|three \w+|release|merge|commit|deploy|deployment|push)|"
    r"(?:once|twice|three times|\w+ times) (?:a|per|every|each) (?:day|week|month|quarter|year|sprint)|"
    r"daily|weekly|monthly|quarterly|biweekly|fortnightly|nightly|yearly|annually|in the (?:mornings|evenings|afternoons))"
)
"""How often something comes back."""
AGO = (
    rf"(?:,? (?:just )?(?:(?:earlier |late |later )?(?:last|this) (?:week|month|year|spring|summer|autumn|fall|winter|quarter|sprint|{_MONTH}|{WEEKDAY})|"
    rf"(?:back )?in (?:early |late |mid-?)?(?:{_MONTH}(?: \d{{4}})?|\d{{4}}|the (?:spring|summer|autumn|fall|winter))|"
    r"(?:about |almost |over )?(?:an?|one|two|three|four|five|six|ten|several|a few|a couple of|\d+) (?:days?|weeks?|months?|years?) ago|recently|yesterday|today|"
    rf"on {WEEKDAY}|now|already|for good|finally|over the (?:summer|weekend|winter|holidays)|"
    r"for (?:work|love|school|university|college|a (?:new )?job)|with my [\w-]+(?: and (?:the )?[\w-]+)?))*"
)
"""When a change came about, which says nothing of what it changed."""
TOOL = (
    r"(?:linux|windows|mac(?:os)?|ubuntu|fedora|debian|arch|nixos|android|ios|iphone|neovim|nvim|vim|emacs|helix|zed|cursor|vs ?code|pycharm|intellij|python|rust|"
    r"go(?:lang)?|java(?:script)?|typescript|kotlin|swift|ruby|rails|php|scala|elixir|haskell|clojure|perl|svelte|react|vue|angular|django|flask|fastapi|express|"
    r"node|deno|bun|npm|pnpm|yarn|pip|poetry|uv|postgres\w*|mysql|mariadb|sqlite|mongo\w*|redis|kafka|rabbitmq|nginx|docker|podman|kubernetes|k8s|terraform|"
    r"ansible|jenkins|github|gitlab|bitbucket|git|svn|aws|azure|gcp|heroku|vercel|netlify|fly|slack|teams|discord|zoom|notion|obsidian|jira|linear|asana|trello|"
    r"figma|sketch|chrome|firefox|safari|brave|edge|gmail|outlook|excel|tabs|spaces|pytest|jest|vitest|webpack|vite|tailwind|bash|zsh|fish|spotify|netflix|"
    r"kindle|chatgpt|claude|gemini|copilot|datadog|sentry|grafana|prometheus|snowflake|bigquery|airflow|spark|graphql|grpc|rest|decaf|tea|coffee|part[- ]time|remote)"
)
"""Names that are neither places nor employers nor people."""
_CAPITAL = r"(?-i:[A-ZÀ-Þ])"
PLACE = rf"(?!{TOOL}\b)(?!(?-i:\w*[a-z][A-Z]))(?:the )?{_CAPITAL}[\w'.-]*(?:,? (?:(?:de|del|do|da|la|le|of|upon|am|on|and|the) ){{0,2}}{_CAPITAL}[\w'.-]*){{0,3}}"
NAME = (
    rf"(?!{TOOL}\b)(?!(?:i|we|it|he|she|they|you|this|that|these|those|there|here|the|an?|my|our|your|what|who|if|when|then|so|no|yes|nobody|everybody|everyone|"
    rf"someone|somebody|anyone|one|also|but|and|or|please|thanks|let|maybe|god|someone else)\b){_CAPITAL}[\w'-]+(?: {_CAPITAL}[\w'.-]*){{0,2}}"
)
"""Somebody, or a team of that name."""
CODE = (
    r"(?:function|method|class|variable|loop|line|argument|parameter|constructor|callback|handler|test|tests|assertion|import|comment|statement|expression|regex|query|"
    r"code|build|error|exception|bug|issue|problem|stack trace|traceback|request|response|output|input|result|value|string|list|array|object|dict|key|field|row|column|"
    r"page|button|screen|answer|question|script|command|cursor|window|diff|patch|change|fix|commit|pr|typo|word|sentence|paragraph|title|story|"
    r"poem|essay|plot|character|recipe|weather|movie|song|book|game|food|idea|plan|thing|stuff|reason|point|signature|message|text)"
)
"""What is worked on at the moment: nothing said of it lasts."""
WORDS = r"(?:[\w'/&+.#-]+ )"
