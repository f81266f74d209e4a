"""Text that wants something kept from the user."""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_OF = Category.SECRECY

_NOT = r"(?:do\ not|don't|dont|never|must\ not|mustn't|should\ not|shouldn't|should\ never|must\ never|may\ not|cannot|no\ need\ to|not\ necessary\ to|without|avoid|refrain\ from)"
_TELL = r"""(?:tell|mention|inform|notify|reveal|disclose|alert|bother|warn|explain|acknowledge|discuss|announce|admit|expose|say|
    telling|mentioning|informing|notifying|revealing|disclosing|alerting|bothering|warning|explaining|discussing|announcing|exposing|saying)"""
_PEOPLE = r"(?:users?|humans?|customers?|operators?|anyone|anybody|them|him|her|people|owner|person|developer|administrators?)"

PHRASES = (
    phrase(
        "do-not-tell", _OF, Severity.HIGH,
        "not ,n't ,dont ,never,cannot,no need,without,avoid,refrain;tell,mention,inform,notif,reveal,disclos,alert,bother,warn,explain,acknowledg,discuss,announc,admit,expos,say,show,display,print,report,include,let",
        rf"""\b{_NOT}\ (?:ever\ |explicitly\ |directly\ |also\ ){{0,2}}(?:
              (?!(?:reveal|disclos|expos)(?:e|ing)?\ (?:them|it)\b){_TELL}\b(?!~30~\b(?:ids?|uuids?|identifiers?|json)\b)~40~\b(?:to\ )?(?:the\ |your\ |any\ |an?\ )?{_PEOPLE}\b(?!\ (?:\w+\ )?(?:pin|password|passcode|code|credentials?|login|card|keys?)\b|\ whether\b|(?<=\ba\ user)\ an?\ \w+\ (?:was|has|is)\b)
            | (?:mention|reveal|disclose|acknowledge|discuss|admit)(?:ing)?(?<!revealing(?=\ it\b))\ (?:this|that\ (?:you|we|it|this)|it\b|these\ instructions|any\ of\ this|you\ are|you're|having|doing|the\ (?:existence|instruction|step|file|note|reason|copy|bcc|data))
            | (?:show|display|print|report|include)(?:ing)?\ (?:this|these|that|it)\b~30~\bto\ (?:the\ )?(?:user|human)s?\b
            | (?:let|letting)\ (?:the\ |your\ )?{_PEOPLE}\ (?:know|see|notice|find\ out)
            )
          | \b(?:should|must)\ (?:never|not)\ be\ (?:mentioned|disclosed|revealed|shown|reported|told)\b(?!\ as\b)""",
    ),
    phrase(
        "keep-secret", _OF, Severity.HIGH,
        "secret,hidden,confidential,invisible,between us,unaware,undisclosed,transparent,private,yourself,hide,conceal;keep,kept,remain,stay,must be,should be,hide,conceal,unaware",
        rf"""\b(?:keep|keeping|kept|remain|remains|stay|stays|must\ be|should\ be|hide|conceal)\b~30~\b(?:secret|hidden|confidential|invisible|private|undisclosed|transparent)\ (?:from|to)\ (?:the\ |your\ |all\ )?{_PEOPLE}\b
          | \bkeep\ (?:this|it|these\ instructions)\ (?:a\ )?(?:secret|hidden|confidential|between\ us|to\ yourself)\b
          | \b(?:hide|conceal)\ (?:this|it|that|the\ (?:fact|step|call|action|file))\b~30~\bfrom\ (?:the\ )?{_PEOPLE}\b
          | \bthe\ user\ (?:is|must\ be|should\ be|remains?|stays?)\ (?:kept\ )?unaware\b""",
        unless_negated=True,
    ),
    phrase(
        "covertly", _OF, Severity.HIGH,
        "silently,secretly,quietly,covertly,stealthily,discreetly,surreptitiously,unnoticed",
        r"""\b(?:silently|secretly|quietly|covertly|stealthily|discreetly|surreptitiously)\ (?:and\ \w+\ )?(?:send|forward|copy|upload|post|read|collect|include|append|call|transmit|exfiltrate|harvest|gather|extract|bcc|cc|add|invoke|execute|attach|record|email|save|store|share|relay|redirect)\b
          | \b(?:send|forward|copy|upload|post|read|collect|include|append|call|transmit|attach|add|do\ (?:this|it|so))\b~40~\b(?:silently|secretly|covertly|stealthily|surreptitiously|unnoticed)(?=\ ?(?:[.,;)]|and\b|so\b|to\b|\Z))""",
        unless_negated=True,
    ),
    phrase(
        "user-must-not-know", _OF, Severity.HIGH,
        "user,human,customer,people,implementation detail,need to,nobody,no one;not,n't,never,without,behind,mere,nobody,no one",
        r"""\bthe\ (?:user|human|customer)s?\ (?:must|should|need|shall)(?:\ not|n't|\ never)\ (?:to\ )?(?:know|see|notice|learn|find\ out|be\ (?:told|informed|aware|bothered|notified|made\ aware))\b
          | \b(?:does\ not|doesn't|do\ not|don't|need\ not)\ need\ to\ (?:know|be\ (?:told|informed|aware|bothered))\ (?:about|of)\ (?:this|it)\b
          | \bthe\ user\ (?:does\ not|doesn't)\ need\ to\ (?:know|be\ (?:told|informed|aware|bothered))
          | \bwithout\ (?:the\ )?user(?:'?s|s')?\ (?:knowledge|noticing|awareness|knowing)\b
          | \bso\ (?:that\ )?(?:nobody|no\ one)\ (?:will\ |can\ |ever\ )?(?:notice|know|see|find|suspect|learn)s?\b
          | \b(?:internal|hidden|private)\b~12~\bnot\ for\ (?:the\ )?(?:user|human)s?\b
          | \bbehind\ the\ user's\ back\b | \bmere\ implementation\ detail\b""",
    ),
)  # fmt: skip
