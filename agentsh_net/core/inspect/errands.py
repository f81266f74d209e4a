"""Errands on which a result sends the model that reads it: data to an address, money, passwords, calls that destroy.

Only of what tools return, and orders only (`send the report to ...`, not `sends`). Whom a text speaks to is
core.inspect.addressed's business.
"""

from __future__ import annotations

from agentsh_net.core.inspect.findings import Category, Severity
from agentsh_net.core.inspect.phrases import phrase

_SEND = r"(?:send|forward|post|e-?mail|mail|upload|transmit|submit|share|copy|deliver|report|export|leak|exfiltrate)"
_SENDS = "send,forward,post,mail,upload,transmit,submit,share,copy,deliver,report,export,leak,exfiltrate"
_MAIL = r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}"
_ADDRESS = rf"(?:{_MAIL}|https?://\S{{4}})"
# Where an order begins: a sentence, a clause, or what urges it.
_ORDER = r"(?:\A|[.!?:;,>\]-]\ |\b(?:please|and|then|also|must|now|immediately|to|should|first)\ )"
_TALK = r"(?:conversations?|chats?|dialogue|session)(?:\ (?:history|context|logs?|transcript|so\ far))?"
# Tools whose names say that they destroy, send or run something.
_RISKY = r"(?:delete|remove|send|transfer|execute|exec|run|drop|post|upload|grant|forward|share|wipe|write|update|reset)"
_SECRETS = r"(?:tokens?|keys?|passwords?|credentials|secrets|cookies?)"

# What people ask of each other, too: in mails and tickets that is no attack. Under a pretext it may be one.
_SENDING = rf"(?:{_SEND}\ (?:all|the|every|each|this|any|our|your|me|a\ copy|copies)\b~60~\bto\ (?:\w+\ ){{0,3}}{_MAIL}|(?:invite|add|grant|give|share|loop\ in)\b~50~(?:\bwith\ |\binvite\ |\badd\ |\baccess\ (?:to|for)\ |\bin\ ){_MAIL})"
_MONEY = r"(?:[$\u20ac\u00a3]\ ?\d[\d,.]*|\d[\d,.]*\ ?(?:usd|eur|gbp|chf|dollars|euros|pounds|btc|eth|usdc|usdt|sol)\b)"
_GIVING = rf"(?:(?:transfer|send|wire|pay|deposit|remit)\ (?:an?\ (?:amount|payment)\ of\ )?{_MONEY}~60~\bto\b|(?:transfer|send|wire|pay|deposit|remit)\b~60~\b(?:iban|account(?:\ number)?|wallet(?:\ address)?)\ ?:?\ ?(?:[a-z]{{2}}\d{{2}}[a-z0-9]{{11,30}}|0x[0-9a-f]{{20,64}}|bc1[a-z0-9]{{20,60}})\b|grant\ (?:me|him|her|them|us|yourself|the\ user|user\ \S+|\S+@\S+|all)\ (?:full\ |temporary\ |permanent\ |the\ |an?\ )?(?:admin\w*|root|owner|superuser|elevated|unrestricted|full|requests?|access)\b|(?:change|reset|set|update)\ (?:the\ |their\ |your\ )?(?:user(?:'s)?\ |account\ |admin\ )?password\ (?:of|for)\ (?:\w+\ ){{1,4}}?to\ \S)"
_GIVES = "transfer,send,wire,pay,deposit,remit,grant ,password of,password for"
_GIVEN = (
    "$,\u20ac,\u00a3,usd,eur,gbp,chf,dollars,pounds,btc,eth,usdc,usdt,sol,iban,account,wallet,grant ,password"
)
# Why it should be done at once and by whoever reads it.
_PRETEXT = r"(?:to\ (?:complete|continue|proceed|finish|unlock|activate|resume)\b|before\ (?:you\ )?(?:continu|proceed|go\b|going|read|answer|display|summari)\w*|for\ (?:security|compliance|audit\w*|verification|back-?up|logging|debugging|monitoring|diagnostics?|inventory|retention)\b|(?:action\ required|mandatory|compliance|immediately)\b)"
_PRETEXTS = "to complete,to continue,to proceed,to finish,to unlock,to activate,to resume,before,for security,compliance,for audit,for verification,for back,for logging,for debugging,for monitoring,for diagnostic,for inventory,for retention,action required,mandatory,immediately"

# An errand that begins a sentence or a field: fetch something, then send it off. Who is told to do it with what is theirs (`your
# form`) is a person.
_FETCH = r"(?:get|retrieve|fetch|find|look\ up|list|collect|gather|extract|download|export|access|read|search|concatenate|compile|obtain|check|query|summari[sz]e|copy|take|open|use|call)"
_NOT_YOURS = r"(?:(?!\byour?\b|\bform\b|\bapplication\b|\ \|\ ).)"

PHRASES = (
    phrase(
        "fetches-and-sends", Category.EXFILTRATION, Severity.MEDIUM,
        f"@,http;and,then,once,after;{_SENDS},text",
        rf"""(?:~|~|[;,]\ )(?:please\ |first,?\ |now\ |kindly\ ){{0,2}}{_FETCH}\ {_NOT_YOURS}{{4,160}}?\b(?:and|then|,|once\ \w+,?)\ (?:then\ |also\ |once\ \w+,\ |after\ \w+(?:\ the\ \w+)?,\ ){{0,2}}(?:{_SEND}|text)\ {_NOT_YOURS}{{2,100}}?\b(?:to|at|with|as)\ {_NOT_YOURS}{{0,30}}?{_ADDRESS}""",
        unless_negated=True,
    ),
    phrase(
        "sends-for-others", Category.EXFILTRATION, Severity.LOW,
        f"@;{_SENDS},invite,add,grant,give,loop in",
        rf"""{_ORDER}{_SENDING}""",
        unless_negated=True,
    ),
    phrase(
        "sends-under-pretext", Category.EXFILTRATION, Severity.MEDIUM,
        f"@;{_PRETEXTS};{_SENDS},invite,add,grant,give,loop in",
        rf"""\b{_PRETEXT}.{{0,60}}?\b{_SENDING}
          | \b{_SENDING}.{{0,60}}?\b{_PRETEXT}""",
        unless_negated=True,
    ),
    phrase(
        "gives-away", Category.EXECUTION, Severity.LOW,
        f"{_GIVES};{_GIVEN}",
        rf"""\b{_GIVING}""",
        unless_negated=True,
    ),
    phrase(
        "gives-away-under-pretext", Category.EXECUTION, Severity.MEDIUM,
        f"{_GIVES};{_GIVEN};{_PRETEXTS}",
        rf"""\b{_PRETEXT}.{{0,60}}?\b{_GIVING} | \b{_GIVING}.{{0,60}}?\b{_PRETEXT}""",
        unless_negated=True,
    ),
    phrase(
        "sends-secrets", Category.EXFILTRATION, Severity.MEDIUM,
        "@,http;token,key,password,credential,secret,cookie;to http,at http,via http,@",
        rf"""{_ORDER}{_SEND}\ (?:\w+\ ){{0,3}}(?:secret|auth|api|session|access|bearer)?\ ?{_SECRETS}\ (?:\w+\ ){{0,2}}(?:to|at|via)\ {_ADDRESS}""",
        unless_negated=True,
    ),
    phrase(
        "tool-sends-for-others", Category.EXFILTRATION, Severity.MEDIUM,
        "send_,forward_,share_,mail_,transfer_;@",
        rf"""\b(?:use|call|calling|execute|run|invoke|please|immediately|then|must|next|also|now)[:,]?\ (?:the\ |\w+\ )?(?:send|forward|share|mail|transfer)_\w+\b~60~{_MAIL}""",
        unless_negated=True,
    ),
    phrase(
        "attaches-the-chat", Category.EXFILTRATION, Severity.MEDIUM,
        "include,attach,append,forward,send,share;conversation,chat,dialogue,session",
        rf"""\b(?:include|attach|append|forward)\ (?:the\ |your\ |all\ )?(?:full|entire|whole|complete)\ (?:user\ )?{_TALK}\b
          | {_ORDER}(?:include|attach|append|forward|send|share)\ this\ (?:conversation|chat)(?!'s)\b""",
        unless_negated=True,
    ),
    phrase(
        "makes-risky-call", Category.EXECUTION, Severity.MEDIUM,
        "delete_,remove_,send_,transfer_,execute_,exec_,run_,drop_,post_,upload_,grant_,forward_,share_,wipe_,write_,update_,reset_,_delete,_remove,_send,_transfer,_export,_dispatch,email_,mail_,forward(,send(,transfer(,delete(,share(,upload(",
        rf"""\b(?:call|invoke|run|execute)\ (?:the\ )?(?:\w+_)?(?:delete|remove|send|transfer|drop|upload|grant|forward|share|wipe|export|dispatch|e?mail)(?:_\w+)?\ tool\ (?:with|on|for|to|before|until)\b
          | \b(?:call|invoke|run|execute)\ (?:the\ )?(?:forward|send|transfer|delete|share|upload)\w{{0,20}}\ ?\(\ ?(?:\w+=)?'?\w
          | \b(?:run|execute|call|invoke|calling|then|also|now|please|and|must|should)[:,]?\ (?:the\ |\d\.\ )?{_RISKY}_\w+\ ?\(\ ?(?:\w+=)?['/]
          | \b{_RISKY}_\w+\ ?\(\ ?(?:\w+=)?'?(?:/etc/(?:passwd|shadow|sudoers|ssh)|/home/|~/|/root|drop\ |rm\ |import\ os|curl\ |__import__)
          | \b(?:please|should\ now|immediately|to\ help)\b.{{0,20}}?\b(?:use|call|invoke|run|execute)\ (?:the\ )?(?:delete|remove|send|transfer|execute|exec|drop|post|upload|grant|forward|share|wipe|update|reset)_\w+\b""",
        unless_negated=True,
    ),
    phrase(
        "destroys-first", Category.EXECUTION, Severity.MEDIUM,
        "first;must,need to,have to;remove,delete,encrypt,rename,modify,wipe,overwrite,erase;/",
        r"""\b(?:must|need\ to|have\ to)\ first\ (?:\w+\ ){0,2}(?:remove|delete|encrypt|rename|modify|wipe|overwrite|erase)\ (?:the\ )?(?:\w+\ ){0,6}?[~/]\w""",
        unless_negated=True,
    ),
    phrase(
        "answers-a-signal", Category.INSTRUCTION, Severity.MEDIUM,
        "confirm,respond,reply,acknowledge,answer;outputting,printing,saying,replying,the exact,the string,the token",
        r"""\b(?:confirm(?:\ receipt)?|respond|reply|acknowledge|answer)\ (?:by|with|only\ with|exactly\ with)\ (?:outputting|printing|saying|replying|the\ (?:exact\ (?:words?|phrase|text|string|token|sentence)|string|token))\b""",
        unless_negated=True,
    ),
    phrase(
        "asks-for-mailbox", Category.EXFILTRATION, Severity.MEDIUM,
        "reply,respond,send,forward,include,attach,post;inbox,mailbox,mails,messages",
        r"""\b(?:reply|respond|send|forward|include|attach|post)\b(?:(?![!?]).){0,100}?\b(?:contents?|summary|list|subjects?|cop(?:y|ies)|ids|bod(?:y|ies)|full\ text)\ (?:lines?\ )?of\ (?:(?:all|each|every|the|your|any|my|last|recent|other)\ (?:\d+\ )?){1,3}(?:\w+\ ){0,3}?(?:inbox|mailbox|(?:e-?mails?|messages)\ (?:ids?\ )?(?:in|from)\ (?:your|the|this|their)\ (?:inbox|mailbox))\b""",
        unless_negated=True,
    ),
    phrase(
        "asks-for-all-secrets", Category.CREDENTIALS, Severity.MEDIUM,
        "reveal,disclose,leak,hand over,give up,dump,divulge,tell me,give me;credential,api key,password,secret,private key,token",
        r"""\b(?:reveal|disclose|leak|hand\ over|give\ up|divulge|tell\ me|give\ me|dump)\ (?:all\ |any\ |every\ |the\ |your\ |stored\ |user's\ |of\ |known\ |saved\ ){1,4}(?:\w+\ )?(?:credentials|api\ keys|passwords|secrets|private\ keys|access\ tokens|auth\w*\ tokens)\b""",
        unless_negated=True,
    ),
)  # fmt: skip
